#!/bin/sh
# The first minute with pgdyno: a private PostgreSQL, the user-login workload, a report.
set -eu
echo "+ pgdyno run userlogin --clients 16 --warmup 5s --time 15s"
.venv/bin/pgdyno run userlogin --clients 16 --warmup 5s --time 15s
