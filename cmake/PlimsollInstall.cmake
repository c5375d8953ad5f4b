# SPDX-License-Identifier: Apache-2.0
# Installs the headers, the libraries and a package file, so that an outside project finds
# plimsoll::plimsoll by find_package(plimsoll CONFIG).
include(CMakePackageConfigHelpers)

install(TARGETS plimsoll plimsoll_base plimsoll_trace plimsoll_place plimsoll_plan plimsoll_sim
                plimsoll_learn plimsoll_planners plimsoll_device plimsoll_exec plimsoll_nn
                plimsoll_chain plimsoll_report
        EXPORT plimsollTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/plimsoll DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE)
install(EXPORT plimsollTargets NAMESPACE plimsoll::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plimsollConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/plimsollConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plimsollConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plimsollConfig.cmake
              ${PROJECT_BINARY_DIR}/plimsollConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
