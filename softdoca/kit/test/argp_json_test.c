/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files: their form, their values, and where they meet a command line. */
#include "argp_lines.h"
#include "check.h"

#define FILE_IS_X "{\"doca_program_flags\": {\"file\": \"x\""
#define DPDK_GROUP                                                                                         \
	"{\"doca_dpdk_flags\": {\"devices\": [{\"device\": \"pf\", \"id\": \"03:00.0\", \"hws\": true}], " \
	"\"core-list\": \"0-1\", \"flags\": \"\",}"
static const struct line lines[] = {
	{"--json JSON", FILE_IS_X "}}", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON", FILE_IS_X ", \"flag\": false, \"number\": -7,}, }", DOCA_SUCCESS,
	 "file=x flag=false number=-7 valid", NULL},
	{"-j JSON", "// one\n" FILE_IS_X " /* two */, // three\n}}\n", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON", "/* a */ " FILE_IS_X "}} // b", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON", FILE_IS_X "}} /* b */\n// c *\n/**/", DOCA_SUCCESS, "file=x valid", NULL},
	{"-f x -j JSON", "{} /* b", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{} /", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{} // b\n{}", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-j JSON", "{\"doca_program_flags\": {\"file\": \"// no /* comment */ ,}\"}}", DOCA_SUCCESS,
	 "file=// no /* comment */ ,} valid", NULL},
	{"-j JSON", FILE_IS_X ", \"many\": [\"1\", \"2\",]}}", DOCA_SUCCESS, "file=x many=1 many=2 valid", NULL},
	{"-j JSON", FILE_IS_X ", \"many\": \"1\"}}", DOCA_SUCCESS, "file=x many=1 valid", NULL},
	{"-j JSON -f y", FILE_IS_X ", \"number\": 2}}", DOCA_SUCCESS, "file=y number=2 valid", NULL},
	{"-j JSON", "{\"doca_general_flags\": {\"log-level\": 60}, \"doca_program_flags\": {\"list\": true}}",
	 DOCA_SUCCESS, "list valid", NULL},
	{"-j JSON", DPDK_GROUP ", \"doca_program_flags\": {\"file\": \"x\"}}", DOCA_SUCCESS, "file=x valid", NULL},
	{"-j JSON -f x", DPDK_GROUP "}", DOCA_SUCCESS, "file=x valid", NULL},
	{"-f x -j JSON", "{\"doca_dpdk_flags\": []}", DOCA_ERROR_INVALID_VALUE, "", "must be a JSON object"},
	{"-j JSON remote", FILE_IS_X "}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"file\""},
	{"-f x -j JSON remote", "{\"doca_program_flags\": {\"host\": \"h\", \"depth\": 3}}", DOCA_SUCCESS,
	 "file=x host=h depth=3 remote valid", NULL},

	{"-f x -j /nonexistent", NULL, DOCA_ERROR_IO_FAILED, "", "cannot be opened"},
	{"-f x -j /", NULL, DOCA_ERROR_IO_FAILED, "", "cannot be read"},
	{"-f x -j JSON", "", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "[1]", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{} {}", DOCA_ERROR_IO_FAILED, "", "no JSON object"},
	{"-f x -j JSON", "{\"doca_program_flags\": 1}", DOCA_ERROR_INVALID_VALUE, "", "must be a JSON object"},
	{"-f x -j JSON", "{\"other_flags\": {}}", DOCA_ERROR_NOT_SUPPORTED, "", "other_flags"},
	{"-j JSON", FILE_IS_X ", \"fil\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"fil\""},
	{"-j JSON", FILE_IS_X ", \"n\": 1}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"n\""},
	{"-j JSON", FILE_IS_X ", \"secret\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"secret\""},
	{"-j JSON", FILE_IS_X ", \"log-level\": 50}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"log-level\""},
	{"-f x -j JSON", "{\"doca_general_flags\": {\"json\": \"y\"}}", DOCA_ERROR_NOT_SUPPORTED, "", "\"json\""},
	{"-j JSON", "{\"doca_program_flags\": {\"file\": \"a\\u0000b\"}}", DOCA_ERROR_INVALID_VALUE, "",
	 "file does not take"},
	{"-j JSON", "{\"doca_program_flags\": {\"file\": 1}}", DOCA_ERROR_INVALID_VALUE, "", "file does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": \"1\"}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": 1.5}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": 9999999999}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
	{"-j JSON", FILE_IS_X ", \"flag\": 1}}", DOCA_ERROR_INVALID_VALUE, "", "flag does not take"},
	{"-j JSON", FILE_IS_X ", \"flag\": null}}", DOCA_ERROR_INVALID_VALUE, "", "flag does not take"},
	{"-j JSON", FILE_IS_X ", \"number\": [1]}}", DOCA_ERROR_INVALID_VALUE, "", "number does not take"},
};

int main(void)
{
	return check_lines("argp JSON", lines, COUNT(lines));
}
