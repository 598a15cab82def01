# Compiler settings shared by every room: language, warnings, instruction set, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(TROUPE_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them (empty: none)")
set(TROUPE_FUZZ OFF CACHE BOOL "Programs of tests/fuzz for libFuzzer; the compiler is clang (preset fuzz)")
set(TROUPE_MARCH "x86-64-v3" CACHE STRING
    "Instruction set of every translation unit. One fixed set gives the same bits on every machine.")

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                    -Wno-missing-field-initializers -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(TROUPE_FUZZ)
  add_compile_options(-Wno-error) # another compiler's warnings: g++'s are the law
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND TROUPE_MARCH)
  add_compile_options(-march=${TROUPE_MARCH})
endif()
if(TROUPE_SANITIZE)
  add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  # g++ 12 under sanitizers takes the unused half of an optional or variant for uninitialised.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(TROUPE_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,vptr)
  endif()
  if(TROUPE_SANITIZE MATCHES thread)
    # TSan does not know free-standing fences; Asio's scheduler orders its handlers by its mutex anyway.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  add_link_options(-fsanitize=${TROUPE_SANITIZE})
endif()
include_directories(${CMAKE_SOURCE_DIR})
