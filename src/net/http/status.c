/* Reason phrases (RFC 9110 and the extensions that inference servers use). */
#include "http/server.h"

const char *http_status_text(int status)
{
	static const struct { int status; const char *text; } table[] = {
		{ 100, "Continue" }, { 200, "OK" }, { 201, "Created" }, { 202, "Accepted" }, { 204, "No Content" },
		{ 206, "Partial Content" }, { 301, "Moved Permanently" }, { 302, "Found" }, { 303, "See Other" },
		{ 304, "Not Modified" }, { 307, "Temporary Redirect" }, { 308, "Permanent Redirect" }, { 400, "Bad Request" },
		{ 401, "Unauthorized" }, { 403, "Forbidden" }, { 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" }, { 408, "Request Timeout" }, { 409, "Conflict" }, { 410, "Gone" },
		{ 411, "Length Required" }, { 412, "Precondition Failed" }, { 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" }, { 417, "Expectation Failed" }, { 422, "Unprocessable Content" },
		{ 424, "Failed Dependency" }, { 429, "Too Many Requests" }, { 431, "Request Header Fields Too Large" },
		{ 499, "Client Closed Request" }, { 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].status == status)
			return table[i].text;
	return "Status";
}
