// Allocation hook: how a program that counts its allocations lets the host room read the counts.
//
// A program that is built for measuring defines this function (bench/support/counting_memory.cpp); in all
// others it is absent, and nothing is counted.
#pragma once

#include <cstdint>

// Calls of malloc and its kin so far: of the main thread, and of all others.
extern "C" [[gnu::weak]] void troupe_allocations(std::uint64_t* main_thread, std::uint64_t* others);
