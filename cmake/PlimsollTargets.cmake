# SPDX-License-Identifier: Apache-2.0
# What our targets have in common. Nothing here touches a target that is not ours.

add_library(plimsoll_build_flags INTERFACE)
target_compile_options(plimsoll_build_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -Wnon-virtual-dtor -Wold-style-cast $<$<BOOL:${PLIMSOLL_WARNINGS_AS_ERRORS}>:-Werror>>)
# Nobody puts a function of their own in the place of one of ours, though the code is position
# independent: so it may be compiled into its callers.
target_compile_options(plimsoll_build_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
if(PLIMSOLL_SANITIZER)
  target_compile_options(plimsoll_build_flags INTERFACE
    -fsanitize=${PLIMSOLL_SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(plimsoll_build_flags INTERFACE -fsanitize=${PLIMSOLL_SANITIZER})
endif()

# plimsoll_library(<folder> SOURCES ... [PUBLIC ...] [PRIVATE ...] [TESTS ...] [TESTS_APART ...]
#                  [TEST_LIBRARIES ...] [LABEL ...])
# The library of one folder under src/plimsoll, and its tests: TESTS lists x_test.cc files, each a
# test program of its own, with that label. With PLIMSOLL_JOIN_FILES those that need no device are
# one program, <folder>_tests, compiled a few files at a time; those of TESTS_APART, whose helpers
# have names that others' have, one by one.
function(plimsoll_library folder)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;PUBLIC;PRIVATE;TESTS;TESTS_APART;TEST_LIBRARIES"
    ${ARGN})
  set(target plimsoll_${folder})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(plimsoll::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder} POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE}
    $<BUILD_INTERFACE:plimsoll_build_flags>)
  if(PLIMSOLL_PRECOMPILE_HEADERS)
    # They are only of use with the same definitions; with those of OpenMP a library has its own.
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:fmt::fmt>)
    if("${ARG_PRIVATE}" MATCHES OpenMP)
      target_precompile_headers(${target} PRIVATE ${PLIMSOLL_LIBRARY_HEADERS})
    else()
      target_precompile_headers(${target} REUSE_FROM plimsoll_library_headers)
    endif()
  endif()
  if(PLIMSOLL_BUILD_TESTS)
    if(PLIMSOLL_JOIN_FILES AND NOT ARG_LABEL)
      plimsoll_test_program(${folder}_tests SOURCES ${ARG_TESTS} ${ARG_TESTS_APART}
        LIBRARIES ${target} ${ARG_TEST_LIBRARIES})
      set_source_files_properties(${ARG_TESTS_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    else()
      foreach(test IN LISTS ARG_TESTS ARG_TESTS_APART)
        plimsoll_test(${test} LIBRARIES ${target} ${ARG_TEST_LIBRARIES} LABEL "${ARG_LABEL}")
      endforeach()
    endif()
  endif()
endfunction()

# What nearly every file of the libraries includes, compiled once: a quarter of the time that they
# take to build.
set(PLIMSOLL_LIBRARY_HEADERS
    <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <span> <string> <variant> <vector>)
function(plimsoll_library_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/library_headers.cc "")
  add_library(plimsoll_library_headers OBJECT ${PROJECT_BINARY_DIR}/library_headers.cc)
  set_target_properties(plimsoll_library_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(plimsoll_library_headers PRIVATE cxx_std_20)
  target_link_libraries(plimsoll_library_headers PRIVATE plimsoll_build_flags fmt::fmt)
  target_precompile_headers(plimsoll_library_headers PRIVATE ${PLIMSOLL_LIBRARY_HEADERS})
endfunction()

# What nearly every test includes, compiled once: half of the time that tests take to build.
function(plimsoll_test_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "")
  add_library(plimsoll_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
  target_compile_features(plimsoll_test_headers PRIVATE cxx_std_20)
  target_compile_options(plimsoll_test_headers PRIVATE ${PLIMSOLL_TEST_OPTIONS})
  target_compile_definitions(plimsoll_test_headers PRIVATE
    PLIMSOLL_DATA_DIR="${PROJECT_SOURCE_DIR}/data")
  target_link_libraries(plimsoll_test_headers PRIVATE plimsoll_build_flags fmt::fmt GTest::gmock
    GTest::gtest_main rapidcheck nlohmann_json::nlohmann_json)
  target_precompile_headers(plimsoll_test_headers PRIVATE
    <gtest/gtest.h> <gmock/gmock.h> <fmt/format.h> <algorithm> <functional> <map>
    <memory> <optional> <string> <vector>)
endfunction()

# plimsoll_test(<x_test.cc> LIBRARIES ... [LABEL unit|slow|cuda])
function(plimsoll_test source)
  cmake_path(GET source STEM name)
  plimsoll_test_program(${name} SOURCES ${source} ${ARGN})
endfunction()

# plimsoll_test_program(<name> SOURCES ... LIBRARIES ... [LABEL unit|slow|cuda])
# With PLIMSOLL_JOIN_FILES, sources are compiled a few at a time: what they have in common is compiled
# once for them.
function(plimsoll_test_program name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${PLIMSOLL_JOIN_FILES}
                                           UNITY_BUILD_BATCH_SIZE 6)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} plimsoll_build_flags fmt::fmt
    GTest::gmock GTest::gtest_main rapidcheck)
  target_compile_definitions(${name} PRIVATE PLIMSOLL_DATA_DIR="${PROJECT_SOURCE_DIR}/data")
  target_compile_options(${name} PRIVATE ${PLIMSOLL_TEST_OPTIONS})
  if(PLIMSOLL_PRECOMPILE_HEADERS)
    target_precompile_headers(${name} REUSE_FROM plimsoll_test_headers)
  endif()
  gtest_discover_tests(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300
    ENVIRONMENT RC_PARAMS=seed=1
    ENVIRONMENT_MODIFICATION OMP_NUM_THREADS=set:1 DISCOVERY_TIMEOUT 60)
endfunction()
