// User actors: actors of the program's own beside the training ones.
//
// A factory spawns a CAF actor in the given system and returns its handle type-erased; it is supervised
// (permanent, one_for_one) in its process and published under its name, so that any process can reach it.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace caf {
class actor;
class actor_system;
} // namespace caf

namespace troupe {

enum class placement : unsigned char { director, every_worker };

using user_actor_factory = std::function<caf::actor(caf::actor_system&)>;

struct user_actor {
  std::string name;
  placement where{placement::director};
  user_actor_factory make;
};

} // namespace troupe
