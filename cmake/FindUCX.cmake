# Finds UCX's ucp and ucs libraries. Defines UCX::ucp.
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h)
find_library(UCX_UCP_LIBRARY ucp)
find_library(UCX_UCS_LIBRARY ucs)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UCX REQUIRED_VARS UCX_INCLUDE_DIR UCX_UCP_LIBRARY UCX_UCS_LIBRARY)
if(UCX_FOUND AND NOT TARGET UCX::ucp)
  add_library(UCX::ucp UNKNOWN IMPORTED)
  set_target_properties(UCX::ucp PROPERTIES
    IMPORTED_LOCATION ${UCX_UCP_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${UCX_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ${UCX_UCS_LIBRARY})
endif()
