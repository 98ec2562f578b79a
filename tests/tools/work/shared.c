/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in C that has the HTTP server of work.go as a library. */
void serveInGo(void);

int main(void)
{
	serveInGo();
}
