#include "bench/support/network_place.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace troupe::bench {

expected<network_place> parse_network_place(const std::string& text) {
  const auto first = text.find(',');
  const auto second = first == std::string::npos ? first : text.find(',', first + 1);
  if (second == std::string::npos)
    return error{errc::bad_argument, "'" + text + "' is no place: NAMESPACE,DEVICE,ADDRESS"};
  return network_place{text.substr(0, first), text.substr(first + 1, second - first - 1),
                       text.substr(second + 1)};
}

expected<void> enter(const network_place& place) {
  const auto path = "/run/netns/" + place.name_space;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // Devices are looked for in /sys, which shows the namespace of whoever mounted it.
  const bool entered = file >= 0 && ::setns(file, CLONE_NEWNET) == 0 && ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) == 0 &&
                       ::umount2("/sys", MNT_DETACH) == 0 &&
                       ::mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
  const auto why = std::string{std::strerror(errno)};
  if (file >= 0) ::close(file);
  if (!entered) return error{errc::internal, path + ": " + why};
  return {};
}

} // namespace troupe::bench
