# What `cmake --install` puts down: headers, both libraries, the tool, and how CMake and pkg-config find them. Nothing in
# it names the place it was installed to, so that the tree may be moved. Components: library (what a program needs to
# run), development (what it needs to be built), tool, notices.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)

set_target_properties(trireme PROPERTIES EXPORT_NAME static)
set_target_properties(trireme_shared PROPERTIES EXPORT_NAME shared)
install(TARGETS trireme trireme_shared EXPORT trireme_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(EXPORT trireme_targets NAMESPACE trireme:: DESTINATION ${package_folder} FILE trireme-targets.cmake
        COMPONENT development)
install(DIRECTORY include/ ${TRIREME_GENERATED_HEADERS}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
if(TARGET trireme_tool)
  install(TARGETS trireme_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
endif()
# Ours, and those of the libraries inside ours.
install(FILES LICENSE THIRD_PARTY_NOTICES DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT notices)

# The manual page and what shells complete by: the tool writes them from its own tables of options.
if(TARGET trireme_tool AND NOT CMAKE_CROSSCOMPILING)
  set(pages ${CMAKE_BINARY_DIR}/pages)
  file(MAKE_DIRECTORY ${pages})
  add_custom_command(OUTPUT ${pages}/trireme.1.gz ${pages}/trireme ${pages}/_trireme ${pages}/trireme.fish
                     COMMAND trireme_tool man > ${pages}/trireme.1
                     COMMAND gzip -9nf ${pages}/trireme.1
                     COMMAND trireme_tool completion bash > ${pages}/trireme
                     COMMAND trireme_tool completion zsh > ${pages}/_trireme
                     COMMAND trireme_tool completion fish > ${pages}/trireme.fish
                     DEPENDS trireme_tool COMMENT "Writing the manual page and the shells' completions")
  add_custom_target(pages ALL DEPENDS ${pages}/trireme.1.gz)
  install(FILES ${pages}/trireme.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
  foreach(script trireme:bash-completion/completions _trireme:zsh/site-functions
                 _trireme:zsh/vendor-completions  # Debian's own, in /usr
                 trireme.fish:fish/vendor_completions.d)
    string(REGEX MATCH "(.*):(.*)" _ ${script})
    install(FILES ${pages}/${CMAKE_MATCH_1} DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2} COMPONENT tool)
  endforeach()
endif()

configure_package_config_file(cmake/trireme-config.cmake.in ${CMAKE_BINARY_DIR}/package/trireme-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# Below 1.0 each minor version is its own; so is the library's SOVERSION.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/trireme-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/trireme-config.cmake
              ${CMAKE_BINARY_DIR}/package/trireme-config-version.cmake DESTINATION ${package_folder}
        COMPONENT development)

# How many folders up from the .pc file the prefix is.
file(RELATIVE_PATH up_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up_to_prefix "${up_to_prefix}")
configure_file(cmake/trireme.pc.in ${CMAKE_BINARY_DIR}/package/trireme.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/trireme.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
