# Language level, warnings and the flags of each preset (CMakePresets.json chooses KVASIR_KIND).

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(KVASIR_KIND release CACHE STRING "release, debug, asan, tsan or fuzz")
set_property(CACHE KVASIR_KIND PROPERTY STRINGS release debug asan tsan fuzz)

# cmake's own flags per build type would mix with ours: everything is said here.
set(CMAKE_BUILD_TYPE None CACHE STRING "" FORCE)

add_compile_definitions(_GNU_SOURCE KVASIR_VERSION="${PROJECT_VERSION}")
foreach(root src src/core src/edge src/net src/tool)
  add_compile_options("SHELL:-iquote ${CMAKE_SOURCE_DIR}/${root}")
endforeach()

add_compile_options(
  -fno-strict-aliasing -fno-common -g
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wswitch-enum -Wformat=2 -Wundef -Wvla -Wwrite-strings
  -Wimplicit-fallthrough)

# A warning is a fault with the compilers we build with (Debian 12 and 13); what a newer one thinks of must not stop a user.
if((CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15) OR
   (CMAKE_C_COMPILER_ID STREQUAL Clang AND CMAKE_C_COMPILER_VERSION VERSION_LESS 20))
  add_compile_options(-Werror)
endif()

# Only for src/: a test may be looser with its integers.
set(KVASIR_STRICT -Wconversion -Wmissing-prototypes -Wcast-qual)

if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wlogical-op -Wduplicated-cond)
  list(APPEND KVASIR_STRICT -Wjump-misses-init)
else()
  add_compile_options(-Wno-gnu -Wno-unused-command-line-argument)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND KVASIR_KIND MATCHES "asan|tsan")
  add_compile_options(-Wno-maybe-uninitialized)        # gcc mistakes instrumented code for uninitialised reads
endif()

if(KVASIR_KIND STREQUAL release)
  add_compile_options(
    -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection
    -ftrivial-auto-var-init=zero)
  list(APPEND KVASIR_STRICT -Wframe-larger-than=16384)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fzero-call-used-regs=used-gpr)
    list(APPEND KVASIR_STRICT -Wnull-dereference)      # needs the optimiser's view; sanitizers confuse it
  endif()
  if(CMAKE_C_COMPILER_ID STREQUAL Clang AND CMAKE_C_COMPILER_VERSION VERSION_LESS 16)
    add_compile_options(-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang)
  endif()
  add_link_options(-pie -Wl,-z,relro,-z,now,-z,noexecstack)
elseif(KVASIR_KIND STREQUAL debug)
  add_compile_options(-O0 -DKVASIR_DEBUG=1)
elseif(KVASIR_KIND STREQUAL asan)
  add_compile_options(-O1 -DKVASIR_DEBUG=1 -fno-omit-frame-pointer -fsanitize=address,undefined
                      -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(KVASIR_KIND STREQUAL tsan)
  add_compile_options(-O1 -DKVASIR_DEBUG=1 -fno-omit-frame-pointer -fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(KVASIR_KIND STREQUAL fuzz)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "the fuzz preset needs clang (CC=clang), this is ${CMAKE_C_COMPILER_ID}")
  endif()
  add_compile_options(-O1 -DKVASIR_DEBUG=1 -DKVASIR_FUZZ=1 -fno-omit-frame-pointer
                      -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
else()
  message(FATAL_ERROR "KVASIR_KIND is '${KVASIR_KIND}': release, debug, asan, tsan or fuzz is meant")
endif()
