# ggml takes "lib" off the names of its libraries for Windows, and llama-cpp-sys-2 looks for libraries
# whose names begin with it. Included after each project() of llama.cpp's build (CMAKE_PROJECT_INCLUDE):
# once all targets of the outermost one are known, ggml's get the names of everybody else's back.

if (PROJECT_IS_TOP_LEVEL)
    function(motley_name_libraries)
        foreach (name ggml ggml-base ggml-cpu)
            if (TARGET ${name})
                set_target_properties(${name} PROPERTIES PREFIX "lib")
            endif()
        endforeach()
    endfunction()
    cmake_language(DEFER CALL motley_name_libraries)
endif()
