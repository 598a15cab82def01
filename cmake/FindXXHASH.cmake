# Finds xxHash. Defines XXHASH::xxhash.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
find_library(XXHASH_LIBRARY xxhash)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XXHASH REQUIRED_VARS XXHASH_INCLUDE_DIR XXHASH_LIBRARY)
if(XXHASH_FOUND AND NOT TARGET XXHASH::xxhash)
  add_library(XXHASH::xxhash UNKNOWN IMPORTED)
  set_target_properties(XXHASH::xxhash PROPERTIES
    IMPORTED_LOCATION ${XXHASH_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${XXHASH_INCLUDE_DIR})
endif()
