/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of NVIDIA's compiler for a DPA that an ordinary compiler does not generate: the program's
 * variable, and how its functions are called. This header is the development kit's own; DOCA has none like it. A source
 * file with code for the DPA names each function that the CPU uses once, and one file of the program names the program:
 *
 *   #ifndef __DPA__
 *   #include <dpa_kit.h>
 *   DPA_KIT_APP(my_app)                            defines struct doca_dpa_app *my_app
 *   DPA_KIT_KERNEL(my_kernel)                      void my_kernel(uint64_t), a thread's
 *   DPA_KIT_RPC(my_call, uint64_t, struct pair)    uint64_t my_call(uint64_t, struct pair), up to 14 arguments
 *   #endif
 *
 * Code of the DPA is C. Its functions must not be static, because the CPU's code refers to them by name, and the two
 * must be different source files, because it declares them with another type.
 */
#ifndef DPA_KIT_H_
#define DPA_KIT_H_

#include "doca_dpa_abi.h"

/* The linker collects what is in this section, and defines where it begins and ends. */
#define DPA_KIT_SECTION "dpa_kit_functions"
extern const struct dpa_kit_function *const __start_dpa_kit_functions[] __attribute__((weak, visibility("hidden")));
extern const struct dpa_kit_function *const __stop_dpa_kit_functions[] __attribute__((weak, visibility("hidden")));

#define DPA_KIT_APP(app)                                                                                            \
	static struct doca_dpa_app dpa_kit_app_##app = {#app, __start_dpa_kit_functions, __stop_dpa_kit_functions}; \
	struct doca_dpa_app *app = &dpa_kit_app_##app;

#define DPA_KIT_LIST(function, as_kernel, as_rpc)                                                            \
	static const struct dpa_kit_function dpa_kit_function_##function = {                                 \
		.name = #function, .func = (doca_dpa_func_t *)function, .kernel = as_kernel, .rpc = as_rpc}; \
	static const struct dpa_kit_function *const dpa_kit_listed_##function                                \
		__attribute__((section(DPA_KIT_SECTION), used)) = &dpa_kit_function_##function;

#define DPA_KIT_KERNEL(function) DPA_KIT_LIST(function, function, NULL)

#define DPA_KIT_RPC(...) DPA_KIT_RPC_EXPANDED(DPA_KIT_FIRST(__VA_ARGS__, ), __VA_ARGS__)
#define DPA_KIT_RPC_EXPANDED(function, ...) DPA_KIT_RPC_OF(function, __VA_ARGS__)
#define DPA_KIT_RPC_OF(function, ...)                                                     \
	static uint64_t dpa_kit_call_##function(struct dpa_kit_args *args)                \
	{                                                                                 \
		(void)args;                                                               \
		DPA_KIT_TAKE_ALL(__VA_ARGS__);                                            \
		return function(DPA_KIT_JOIN(DPA_KIT_GIVE_, DPA_KIT_COUNT(__VA_ARGS__))); \
	}                                                                                 \
	DPA_KIT_LIST(function, NULL, dpa_kit_call_##function)

/* ---- the arguments of a call: lists begin with the function's name, so that none is empty ---- */

#define DPA_KIT_FIRST(first, ...) first
#define DPA_KIT_JOIN(a, b) DPA_KIT_JOIN_AGAIN(a, b)
#define DPA_KIT_JOIN_AGAIN(a, b) a##b

#define DPA_KIT_COUNT(...) DPA_KIT_SIXTEENTH(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define DPA_KIT_SIXTEENTH(function, a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) count

/* The type as which an argument of this type is passed where the number of arguments varies. */
#define DPA_KIT_PROMOTED(type)                                                                              \
	__typeof__(_Generic(*(type *)0, _Bool : 0, char : 0, signed char : 0, unsigned char : 0, short : 0, \
			    unsigned short : 0, float : 0.0, default                                        \
			    : *(type *)0))

#define DPA_KIT_TAKE(number, type) type argument##number = va_arg(args->list, DPA_KIT_PROMOTED(type));
#define DPA_KIT_TAKE_ALL(...) DPA_KIT_JOIN(DPA_KIT_TAKE_, DPA_KIT_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define DPA_KIT_TAKE_0(function)
#define DPA_KIT_TAKE_1(function, type) DPA_KIT_TAKE(1, type)
#define DPA_KIT_TAKE_2(function, type, ...) DPA_KIT_TAKE(2, type) DPA_KIT_TAKE_1(function, __VA_ARGS__)
#define DPA_KIT_TAKE_3(function, type, ...) DPA_KIT_TAKE(3, type) DPA_KIT_TAKE_2(function, __VA_ARGS__)
#define DPA_KIT_TAKE_4(function, type, ...) DPA_KIT_TAKE(4, type) DPA_KIT_TAKE_3(function, __VA_ARGS__)
#define DPA_KIT_TAKE_5(function, type, ...) DPA_KIT_TAKE(5, type) DPA_KIT_TAKE_4(function, __VA_ARGS__)
#define DPA_KIT_TAKE_6(function, type, ...) DPA_KIT_TAKE(6, type) DPA_KIT_TAKE_5(function, __VA_ARGS__)
#define DPA_KIT_TAKE_7(function, type, ...) DPA_KIT_TAKE(7, type) DPA_KIT_TAKE_6(function, __VA_ARGS__)
#define DPA_KIT_TAKE_8(function, type, ...) DPA_KIT_TAKE(8, type) DPA_KIT_TAKE_7(function, __VA_ARGS__)
#define DPA_KIT_TAKE_9(function, type, ...) DPA_KIT_TAKE(9, type) DPA_KIT_TAKE_8(function, __VA_ARGS__)
#define DPA_KIT_TAKE_10(function, type, ...) DPA_KIT_TAKE(10, type) DPA_KIT_TAKE_9(function, __VA_ARGS__)
#define DPA_KIT_TAKE_11(function, type, ...) DPA_KIT_TAKE(11, type) DPA_KIT_TAKE_10(function, __VA_ARGS__)
#define DPA_KIT_TAKE_12(function, type, ...) DPA_KIT_TAKE(12, type) DPA_KIT_TAKE_11(function, __VA_ARGS__)
#define DPA_KIT_TAKE_13(function, type, ...) DPA_KIT_TAKE(13, type) DPA_KIT_TAKE_12(function, __VA_ARGS__)
#define DPA_KIT_TAKE_14(function, type, ...) DPA_KIT_TAKE(14, type) DPA_KIT_TAKE_13(function, __VA_ARGS__)

#define DPA_KIT_GIVE_0
#define DPA_KIT_GIVE_1 argument1
#define DPA_KIT_GIVE_2 argument2, DPA_KIT_GIVE_1
#define DPA_KIT_GIVE_3 argument3, DPA_KIT_GIVE_2
#define DPA_KIT_GIVE_4 argument4, DPA_KIT_GIVE_3
#define DPA_KIT_GIVE_5 argument5, DPA_KIT_GIVE_4
#define DPA_KIT_GIVE_6 argument6, DPA_KIT_GIVE_5
#define DPA_KIT_GIVE_7 argument7, DPA_KIT_GIVE_6
#define DPA_KIT_GIVE_8 argument8, DPA_KIT_GIVE_7
#define DPA_KIT_GIVE_9 argument9, DPA_KIT_GIVE_8
#define DPA_KIT_GIVE_10 argument10, DPA_KIT_GIVE_9
#define DPA_KIT_GIVE_11 argument11, DPA_KIT_GIVE_10
#define DPA_KIT_GIVE_12 argument12, DPA_KIT_GIVE_11
#define DPA_KIT_GIVE_13 argument13, DPA_KIT_GIVE_12
#define DPA_KIT_GIVE_14 argument14, DPA_KIT_GIVE_13

#endif
