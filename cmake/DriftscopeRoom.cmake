# One target per room, with the same strict flags everywhere.

add_library(driftscope_flags INTERFACE)
target_compile_options(driftscope_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion $<$<NOT:$<BOOL:$<TARGET_PROPERTY:DRIFTSCOPE_IN_UNITY>>>:-Wshadow> -Werror
    -ffp-contract=off -fno-fast-math>
  # clang (fuzz targets) does not know gcc's pragmas.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unknown-pragmas>)
target_include_directories(driftscope_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# System headers of libraries stay out of -Werror through IMPORTED targets.
if(DRIFTSCOPE_SANITIZE)
  target_compile_options(driftscope_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DRIFTSCOPE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all>)
  target_link_options(driftscope_flags INTERFACE -fsanitize=${DRIFTSCOPE_SANITIZE})
endif()

# driftscope_room(NAME [DEPENDS target…]): a static library from every .cpp of the current folder.
# Files named *_avx2.cpp, *_avx512.cpp and *_avx512bf16.cpp get the flags of their instruction set; everything
# else stays at the baseline, so one binary starts on any x86-64.
function(driftscope_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(NOT sources)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE driftscope_flags ${ROOM_DEPENDS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC driftscope_flags ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  driftscope_isa_flags("${sources}")
  driftscope_unity(${name})
endfunction()

# Several files of a room of the engine in one unit, where DRIFTSCOPE_UNITY says so: the headers cost
# more than the files. Names in anonymous namespaces must therefore differ within such a room.
function(driftscope_unity name)
  if(NOT DRIFTSCOPE_UNITY OR NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/engine/")
    return()
  endif()
  # -Wshadow and -Wsubobject-linkage would warn of one file's names in another's; the build without
  # units warns within files.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8
    DRIFTSCOPE_IN_UNITY ON)
  target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
endfunction()

function(driftscope_isa_flags sources)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  set(level "-O3")
  if(DRIFTSCOPE_SANITIZE)
    set(level "-O1")
  endif()
  foreach(source IN LISTS sources)
    if(source MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "${level};-mavx2;-mfma;-mf16c")
    elseif(source MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "${level};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mfma;-mf16c;-mprefer-vector-width=512")
    elseif(source MATCHES "_avx512bf16\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "${level};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512bf16;-mfma;-mf16c;-mprefer-vector-width=512")
    endif()
  endforeach()
endfunction()

# driftscope_tests(NAME DEPENDS target…): a GoogleTest program from every .cpp of the folder.
function(driftscope_tests name)
  cmake_parse_arguments(TESTS "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  driftscope_isa_flags("${sources}")
  target_link_libraries(${name} PRIVATE driftscope_flags ${TESTS_DEPENDS} GTest::gmock
    GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    DRIFTSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    DRIFTSCOPE_BINARY_DIR="${PROJECT_BINARY_DIR}"
    DRIFTSCOPE_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared/data")
  # Compiling costs more than running there, but for the tests that compute much themselves.
  if(DRIFTSCOPE_SANITIZE AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "/(kernels|simt)$")
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(DRIFTSCOPE_SANITIZE)
    driftscope_sharded_tests(${name})
  else()
    include(GoogleTest)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# Several tests in one process: a program of 100 MB under AddressSanitizer takes longer to start than
# most tests to run. Only what fails is printed, by name.
function(driftscope_sharded_tests name)
  set(shards 6)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}.${shard} COMMAND ${name})
    set(environment GTEST_BRIEF=1 GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${shard})
    if(DRIFTSCOPE_SANITIZE MATCHES "address")
      list(APPEND environment
        "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan_suppressions.txt:print_suppressions=0")
    endif()
    set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT 1800 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
