"""Scripts and option sets on which stock pgbench and the engine are compared."""

from __future__ import annotations

from tests.pg.pgbench_expressions import single_expressions, typed_script
from tests.pg.pgbench_pair import Case

ONE = "-n -t 1"
DEFINED = "-D one=1 -D half=0.5 -D word=abc -D yes=yes --random-seed=11"
DRAWN = "SELECT * FROM drawn ORDER BY 1, 2"
EMPTY = "TRUNCATE drawn"
CREATE = "CREATE TABLE drawn (k text, v text)"

# Name, script. Each writes into `drawn`, shows values with debug(), or is wrong.
SCRIPTS: tuple[tuple[str, str], ...] = (
    ("one statement", "INSERT INTO drawn VALUES ('a', 'b');\n"),
    ("no semicolon", "INSERT INTO drawn VALUES ('a', 'b')"),
    ("two statements", "INSERT INTO drawn VALUES (1, 2); INSERT INTO drawn VALUES (3, 4);"),
    ("joined", "INSERT INTO drawn VALUES (1, 2)\\; INSERT INTO drawn VALUES (3, 4);"),
    ("joined to nothing", "INSERT INTO drawn VALUES (1, 2)\\;;"),
    ("empty statements", ";;INSERT INTO drawn VALUES (1, 2);;"),
    ("nothing", ""),
    ("only comments", "-- one\n/* two */\n"),
    ("comment at the end", "INSERT INTO drawn VALUES (1, 2); -- done"),
    ("comment inside", "INSERT INTO drawn -- here; and\n VALUES (1, /* there; */ 2);"),
    ("nested comments", "INSERT INTO drawn VALUES (1, /* a /* b; */ c; */ 2);"),
    ("quotes", "INSERT INTO drawn VALUES ('a;b', 'it''s');"),
    ("identifier", 'INSERT INTO drawn ("k", "v") VALUES (1, \'";"\');'),
    ("escape string", "INSERT INTO drawn VALUES (E'a\\';b', E'\\\\');"),
    ("dollar quotes", "INSERT INTO drawn VALUES ($$a;b'$$, $x$c;$$;d$x$);"),
    ("dollar in a name", "INSERT INTO drawn SELECT a$b, 2 FROM (VALUES (1)) AS t (a$b);"),
    ("unicode string", "INSERT INTO drawn VALUES (U&'d\\0061t', N'n');"),
    ("bits", "INSERT INTO drawn VALUES (B'101', X'1F');"),
    ("continued string", "INSERT INTO drawn VALUES ('a'\n'b', 2);"),
    ("accents", "INSERT INTO drawn VALUES ('é', 'ü;ß');"),
    ("carriage returns", "\\set a 1\r\nINSERT INTO drawn VALUES\r\n(:a, 2);\r\n"),
    ("unterminated string", "SELECT 'a;\n"),
    ("unterminated identifier", 'SELECT "a;\n'),
    ("unterminated comment", "SELECT 1; /* a"),
    ("unterminated dollar quote", "SELECT $$a;\n"),
    ("parentheses", "INSERT INTO drawn SELECT (1), (SELECT 2;);"),
    ("semicolon in parentheses", "INSERT INTO drawn SELECT (1;2), 3;"),
    ("a rule", "CREATE TEMP TABLE t (a int);\nCREATE RULE r AS ON INSERT TO t DO ALSO\n"
     "(INSERT INTO drawn VALUES (1, 2); INSERT INTO drawn VALUES (3, 4));\n"
     "INSERT INTO t VALUES (1);"),
    ("cast", "\\set int 5\nINSERT INTO drawn VALUES (1::int, :int);"),
    ("unknown variable", "INSERT INTO drawn SELECT 1, 2 WHERE 'a:b' <> ':c';"),
    ("variable in a string", "\\set a 7\nINSERT INTO drawn VALUES (':a', :a);"),
    ("variable in a comment", "\\set a 7\nINSERT INTO drawn VALUES (:a, /* :a */ 1);"),
    ("variable beside text", "\\set a 7\nINSERT INTO drawn VALUES (:a||'x', :a+:a);"),
    ("array slice", "\\set b 2\nINSERT INTO drawn SELECT (ARRAY[1,2,3])[1::b], 1;"),
    ("double variable", "\\set d 1.0/3\nINSERT INTO drawn VALUES (:d, 1e3);"),
    ("boolean variable", "\\set t 1 < 2\nINSERT INTO drawn VALUES (:t, 1);"),
    ("null variable", "\\set n null\nINSERT INTO drawn VALUES (:n, 1);"),
    ("name with digits", "\\set a1_b 3\nINSERT INTO drawn VALUES (:a1_b, 1);"),
    ("name with accents", "\\set é 3\nINSERT INTO drawn VALUES (:é, 1);"),
    ("name is case sensitive", "\\set a 1\n\\set A 2\nINSERT INTO drawn VALUES (:a, :A);"),
    ("automatic variables", "INSERT INTO drawn VALUES (:client_id, :scale);\n"
     "\\set d debug(:default_seed)\n\\set s debug(:random_seed)\n"),
    ("continued set", "\\set a 1 + \\\n 2\nINSERT INTO drawn VALUES (:a, 1);"),
    ("continued set, CRLF", "\\set a 1 + \\\r\n 2\r\nINSERT INTO drawn VALUES (:a, 1);"),
    ("indented set", "  \\set a 1\n\tINSERT INTO drawn VALUES (:a, 1);"),
    ("upper case set", "\\SET a 1\nINSERT INTO drawn VALUES (:a, 1);"),
    ("set after SQL", "INSERT INTO drawn VALUES (1, 1) \\set a debug(1)\n"),
    ("set in the middle of SQL", "INSERT INTO drawn SELECT(\\set a debug(1)\n1, 1);"),
    ("set without a value", "\\set a\n"),
    ("set without a name", "\\set\n"),
    ("set a bad name", "\\set a-b 1\n"),
    ("set starts with a digit", "\\set 1a 1\n"),
    ("comment behind set", "\\set a 1 -- no\n"),
    ("several sets", "\\set a 1\n\\set b :a + 1\n\\set a :b * 2\n\\set c debug(:a + :b)\n"),
    ("set itself", "\\set a 1\n\\set a debug(:a + 1)\n\\set a debug(:a + 1)\n"),
    ("undefined in set", "\\set a :nosuch + 1\n"),
    ("gset", "SELECT 1 AS a, 'x' AS b \\gset\nINSERT INTO drawn VALUES (:a, ':b');"),
    ("gset with a prefix", "SELECT 1 AS a, 2 AS b \\gset p_\n"
     "INSERT INTO drawn VALUES (:p_a, :p_b);"),
    ("gset of no row", "SELECT 1 AS a WHERE false \\gset\nINSERT INTO drawn VALUES (1, 1);"),
    ("gset of two rows", "SELECT generate_series(1, 2) AS a \\gset\n"
     "INSERT INTO drawn VALUES (1, 1);"),
    ("gset of a joined statement", "SELECT 1 AS a\\; SELECT 2 AS a \\gset\n"
     "INSERT INTO drawn VALUES (:a, 1);"),
    ("gset of a command without rows", "INSERT INTO drawn VALUES (1, 1) \\gset\nSELECT 1;"),
    ("gset of null", "SELECT null AS a \\gset\nINSERT INTO drawn VALUES (':a', 1);"),
    ("gset of a bad name", "SELECT 1 AS \"a b\" \\gset\nINSERT INTO drawn VALUES (1, 1);"),
    ("gset without SQL", "\\gset\n"),
    ("gset after set", "\\set a 1\n\\gset\n"),
    ("two gsets", "SELECT 1 AS a \\gset\n\\gset\n"),
    ("gset with two prefixes", "SELECT 1 AS a \\gset a_ b_\n"),
    ("gset in the text", "SELECT 1 AS a \\gset\nSELECT :a + 1 AS b \\gset\n\\set c debug(:b)\n"),
    ("aset", "SELECT 1 AS a\\; SELECT 2 AS b \\aset\nINSERT INTO drawn VALUES (:a, :b);"),
    ("aset with a prefix", "SELECT 1 AS a\\; SELECT 2 AS b \\aset p_\n"
     "INSERT INTO drawn VALUES (:p_a, :p_b);"),
    ("aset of no row", "SELECT 1 AS a\\; SELECT 2 AS b WHERE false \\aset\n"
     "INSERT INTO drawn VALUES (:a, 1);"),
    ("aset of many rows", "SELECT generate_series(1, 3) AS a \\aset\n"
     "INSERT INTO drawn VALUES (:a, 1);"),
    ("if", "\\if 1\nINSERT INTO drawn VALUES (1, 1);\n\\endif\n"),
    ("if not", "\\if 0\nINSERT INTO drawn VALUES (1, 1);\n\\endif\n"
     "INSERT INTO drawn VALUES (2, 2);"),
    ("if null", "\\if null\nINSERT INTO drawn VALUES (1, 1);\n\\endif\nSELECT 1;"),
    ("if else", "\\if false\nINSERT INTO drawn VALUES (1, 1);\n\\else\n"
     "INSERT INTO drawn VALUES (2, 1);\n\\endif\n"),
    ("elif", "\\set a 2\n\\if :a = 1\nINSERT INTO drawn VALUES (1, 1);\n\\elif :a = 2\n"
     "INSERT INTO drawn VALUES (2, 1);\n\\elif :a = 2\nINSERT INTO drawn VALUES (3, 1);\n\\else\n"
     "INSERT INTO drawn VALUES (4, 1);\n\\endif\n"),
    ("nested if", "\\if 1\n\\if 0\nINSERT INTO drawn VALUES (1, 1);\n\\elif 1\n"
     "INSERT INTO drawn VALUES (2, 1);\n\\endif\n\\else\n\\if 1\nINSERT INTO drawn VALUES (3, 1);\n"
     "\\endif\n\\endif\n"),
    ("skipped errors", "\\if false\n\\set a 1/0\nSELECT 1/0;\n\\elif true\n\\set b debug(1)\n"
     "\\elif 1/0\n\\set c debug(2)\n\\endif\n"),
    ("skipped if", "\\if false\n\\if 1/0\n\\set a debug(1)\n\\endif\n"
     "\\else\n\\set b debug(2)\n\\endif\n"),
    ("if of a double", "\\if 0.5\n\\set a debug(1)\n\\endif\n"),
    ("if without endif", "\\if 1\nSELECT 1;\n"),
    ("endif without if", "SELECT 1;\n\\endif\n"),
    ("else without if", "\\else\n\\endif\n"),
    ("elif without if", "\\elif 1\n\\endif\n"),
    ("else after else", "\\if 1\n\\else\n\\else\n\\endif\n"),
    ("elif after else", "\\if 1\n\\else\n\\elif 1\n\\endif\n"),
    ("if without a condition", "\\if\n\\endif\n"),
    ("endif with an argument", "\\if 1\n\\endif 1\n"),
    ("else with an argument", "\\if 1\n\\else 1\n\\endif\n"),
    ("sleep", "\\sleep 1 us\n\\sleep 1ms\n\\sleep 0\n\\set a 1\n\\sleep :a us\nSELECT 1;"),
    ("sleep without an argument", "\\sleep\n"),
    ("sleep of a fraction", "\\sleep 1.5\n"),
    ("sleep of a bad unit", "\\sleep 1 min\n"),
    ("sleep of a word", "\\sleep abc\n"),
    ("sleep with too many arguments", "\\sleep 1 ms 2\n"),
    ("sleep of an undefined variable", "\\sleep :nosuch us\n"),
    ("sleep of a bad variable", "\\set a 0\n\\sleep :a\nSELECT 1;"),
    ("shell", "\\shell true\nINSERT INTO drawn VALUES (1, 1);"),
    ("shell fails", "\\shell false\nINSERT INTO drawn VALUES (1, 1);"),
    ("shell with a variable", "\\set a 3\n\\shell test :a = 3\n\\shell test ::a = :a\n"),
    ("shell with an undefined variable", "\\shell test :nosuch\n"),
    ("shell without a command", "\\shell\n"),
    ("setshell", "\\setshell a echo 42\nINSERT INTO drawn VALUES (:a, 1);"),
    ("setshell with a variable", "\\set a 3\n\\setshell b expr :a + 4\n\\set c debug(:b)\n"),
    ("setshell of no number", "\\setshell a printf abc\n"),
    ("setshell fails", "\\setshell a false\n"),
    ("setshell without a command", "\\setshell a\n"),
    ("setshell without anything", "\\setshell\n"),
    ("setshell of a bad name", "\\setshell 1 echo 1\n"),
    ("unknown meta command", "\\nosuch 1\n"),
    ("set of two values", "\\set a 1 2\n"),
    ("syntax error", "SELECT FROM WHERE;"),
    ("division by zero in SQL", "INSERT INTO drawn VALUES (1, 1);\nSELECT 1 / 0;"),
    ("error in the second joined statement", "SELECT 1\\; SELECT 1/0\\; SELECT 2;"),
    ("missing table", "SELECT * FROM nosuch;"),
    ("notice", "DO $$BEGIN RAISE NOTICE 'hello'; END$$;"),
    ("warning", "COMMIT;"),
    ("open transaction", "BEGIN;\nINSERT INTO drawn VALUES (1, 1);"),
    ("failed transaction", "BEGIN;\nSELECT 1/0;\nEND;"),
    ("transaction", "BEGIN;\nINSERT INTO drawn VALUES (1, 1);\nEND;"),
    ("rolled back", "BEGIN;\nINSERT INTO drawn VALUES (1, 1);\nROLLBACK;"),
    ("copy from", "COPY drawn FROM STDIN;\n1\t2\n\\.\n"),
    ("copy to", "COPY drawn TO STDOUT;"),
    ("empty query", "/* nothing */;"),
    ("listen and notify", "LISTEN a;\nNOTIFY a;\nUNLISTEN a;"),
    ("large result", "SELECT generate_series(1, 10000);"),
    ("backslash in SQL", "SELECT 1 \\ 2;\n"),
    ("setrandom is gone", "\\set a random(1, 10)\n\\set b debug(:a)\n"),
    ("long line", "INSERT INTO drawn VALUES (1, '" + "x" * 3000 + "');"),
    ("many variables", "\n".join(f"\\set v{i} {i}" for i in range(60))
     + "\nINSERT INTO drawn VALUES (1, " + " + ".join(f":v{i}" for i in range(60)) + ");"),
    ("random rows", "\\set a random(1, 1000)\n\\set b random_gaussian(1, 1000, 3)\n"
     "\\set c random_zipfian(1, 1000, 1.2)\n\\set d random_exponential(1, 1000, 4)\n"
     "INSERT INTO drawn VALUES (:a, :b), (:c, :d);"),
    ("pipeline in simple mode", "\\startpipeline\nSELECT 1;\n\\endpipeline\n"),
)  # fmt: skip

# Stock binds the text 'NULL' where the variable is null (docs/pgbench.md).
SIMPLE_ONLY = frozenset({"null variable"})
PIPELINES: tuple[tuple[str, str], ...] = (
    ("pipeline", "\\startpipeline\nINSERT INTO drawn VALUES (1, 1);\n"
     "INSERT INTO drawn VALUES (2, 2);\n\\endpipeline\n"),
    ("empty pipeline", "\\startpipeline\n\\endpipeline\n"),
    ("two pipelines", "\\startpipeline\nSELECT 1;\n\\endpipeline\n"
     "\\startpipeline\nSELECT 2;\n\\endpipeline\n"),
    ("pipeline in a transaction", "BEGIN;\n\\startpipeline\nINSERT INTO drawn VALUES (1, 1);\n"
     "\\endpipeline\nEND;"),
    ("set in a pipeline", "\\startpipeline\n\\set a 4\nINSERT INTO drawn VALUES (:a, 1);\n"
     "\\endpipeline\n"),
    ("sleep in a pipeline", "\\startpipeline\nSELECT 1;\n\\sleep 1 ms\nSELECT 2;\n\\endpipeline\n"),
    ("error in a pipeline", "\\startpipeline\nINSERT INTO drawn VALUES (1, 1);\nSELECT 1/0;\n"
     "INSERT INTO drawn VALUES (2, 2);\n\\endpipeline\n"),
    ("two startpipelines", "\\startpipeline\n\\startpipeline\n"),
    ("endpipeline alone", "\\endpipeline\n"),
    ("pipeline stays open", "\\startpipeline\nSELECT 1;\n"),
    ("gset in a pipeline", "\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline\n"),
    ("pipeline with an argument", "\\startpipeline 1\n\\endpipeline\n"),
    ("endpipeline with an argument", "\\startpipeline\n\\endpipeline 1\n"),
)  # fmt: skip
SYNC_PIPELINES: tuple[tuple[str, str], ...] = (
    ("syncpipeline", "\\startpipeline\nINSERT INTO drawn VALUES (1, 1);\n\\syncpipeline\n"
     "INSERT INTO drawn VALUES (2, 2);\n\\endpipeline\n"),
    ("syncpipeline alone", "\\syncpipeline\n"),
    ("syncpipeline last", "\\startpipeline\nSELECT 1;\n\\syncpipeline\n"),
    ("syncpipeline twice", "\\startpipeline\nSELECT 1;\n\\syncpipeline\n\\syncpipeline\n"
     "\\endpipeline\n"),
)  # fmt: skip

S = {"s.sql": "SELECT 1;\n", "t.sql": "\\set a 1\nSELECT :a;\n"}
# Options that are refused before a connection is made, or print something and end.
REFUSED: tuple[str, ...] = (
    "-c", "-c 0", "-c abc", "-c -1", "-c 1x", "-c 99999999999", "-j 0", "-j x", "-t 0", "-t abc",
    "-T 0", "-T x", "-T -1", "-t 1 -T 1", "-T 1 -t 1", "-M nosuch", "-M Simple", "-M prep", "-P 0",
    "-P x", "-R 0", "-R -1", "-R x", "-L 0", "-L x", "-s 0", "-s x", "-D a", "-D =1", "-D a=",
    "-D", "-F 9 -i", "-F 101 -i", "-F x -i", "-F 50", "-i -c 2", "-i -t 5", "-i -S", "-i -N",
    "-i -f s.sql", "-i -b tpcb", "-i -M simple", "-i -P 1", "-i -r", "-i -l", "-i -C",
    "-i -R 1", "-i -L 1", "-i -T 1", "-i -D a=1", "-i -v", "-q", "-I dt", "-i -I", "-i -I x",
    "-i -I dtx", "-i -I ,", "--foreign-keys", "--unlogged-tables", "--tablespace=x",
    "--index-tablespace=x", "--partitions=2", "--partition-method=hash",
    "-i --partition-method=hash", "-i --partition-method=nosuch --partitions=2",
    "-i --partitions=-1", "-i --partitions=x", "-i --foreign-keys -c 1", "--sampling-rate=0.5",
    "--sampling-rate=2 -l", "--sampling-rate=0 -l", "--sampling-rate=x -l",
    "--aggregate-interval=1",
    "--aggregate-interval=0 -l", "--aggregate-interval=x -l", "-l --aggregate-interval=2 -T 1",
    "-l --aggregate-interval=2 -T 3", "-l --aggregate-interval=1 --sampling-rate=0.5",
    "--log-prefix=x", "--progress-timestamp", "--max-tries=-1", "--max-tries=0", "--max-tries=x",
    "--random-seed=x", "--random-seed=-1x", "--random-seed=", "--show-script=nosuch",
    "--show-script=tpcb-like", "--show-script=se", "--show-script=simple-update",
    "--show-script=s", "--show-script=", "-b list", "-b nosuch", "-b s", "-b", "-b tpcb@x",
    "-b tpcb@-1", "-b tpcb@0", "-b tpcb@99999999999", "-b @1", "-b tpcb@", "-f nosuch.sql",
    "-f nosuch.sql@1", "-f s.sql@x", "-f s.sql@0", "-f s.sql@-1", "-f", "-f s.sql@0 -f t.sql@0",
    "--nosuch", "-x", "--bad-option=1", "a b", "a b c", "--client", "--time=", "--protocol",
    "--in", "--p", "--part", "--log", "--sam 1", "--random", "-S -f", "-c2 -j", "--jobs=", "-Tx",
    "--debug=1", "-nS -c0", "--no-vacuum=1", "--quiet", "-iq --quiet -c1", "-i -n -c 1",
)  # fmt: skip
# Options of runs that do something: with the standard tables, or with a script of one's own.
RUNS: tuple[str, ...] = (
    "-n -t 5", "-n -t 5 -S", "-n -t 5 -N", "-n -S -M extended", "-n -S -M prepared", "-S -t 1",
    "-n -S -c 2 -j 2 -t 3", "-n -S -c 3 -j 9 -t 2", "-n -S -C -t 3", "-n -S -r -t 2", "-v -t 1",
    "-n -r -t 2", "-n -t 2 -b tpcb", "-n -t 2 -b si", "-n -t 2 -b se@3",
    "-n -t 9 -S -N -r --random-seed=8",
    "-n -t 9 -b se@1 -b si@0", "-n -S -L 1000 -t 3", "-n -S -R 5000 -t 3",
    "-n -S -R 5000 -L 1000 -t 3", "-n -S -s 7 -t 1", "-n -S -t 2 --max-tries=3", "-nS -t1",
    "-n -S -t 2 --max-tries=3 -r", "-n -S -t 2 --failures-detailed", "-n -S -t 2 --verbose-errors",
    "-n -S --transactions=2 --client=2", "-n -S --trans 2 --cl 2 --jo 2", "-S -t 2 --no-vacuum",
    "-n -S -t 2 -c2 -j2 -r --failures-detailed --max-tries=5 -L 5000", "-n --select-only -t 1",
    "-n -S -t 1 --random-seed=5", "-n -S -t 1 --protocol=prepared --report-per-command",
    "-n -S --max-tries=0 -L 100 -t 1", "-n -t 1 -f {place}/s.sql", "-n -t 1 -f {place}/s.sql@3",
    "-n -t 3 -f {place}/s.sql -f {place}/t.sql --random-seed=1", "-n -t 1 -f -",
    "-n -t 3 -f {place}/s.sql@2 -f {place}/t.sql -r --random-seed=2",
    "-t 1 -n -f {place}/s.sql -s 5",
    "-n -t 3 -S -f {place}/s.sql@0 -r --random-seed=2", "-n -t 1 -D a=1 -f {place}/t.sql",
    "-n -t 1 -D scale=5 -S", "-n -t 2 -f {place}/s.sql -C -r", "-n -t 1 -S -R 1000x",
    "-n -t 2 -f {place}/s.sql -c 2 -j 2 -r -M prepared --random-seed=9", "-n -t 1 -S -U nosuch",
    "-n -t 2 -f {place}/t.sql -f {place}/t.sql -r --max-tries=2 --random-seed=3",
    "-n -t 1 -S nosuchdatabase", "-n -t 1 -S -h nosuchfolder/x", "-n -S dbname=nosuch -t 1",
    "-n -t 1 -f {place}/s.sql --debug", "-n -t 1 -f {place}/t.sql --debug -M extended",
    "-n -t 1 -b nosuch@", "-n -t 1 --progress=5 -S", "-n -t 1 -f {place}/s.sql -T 1 -n",
    "-n -t 2 -c 2 -f {place}/s.sql -L 1000 -R 1000 -C",
)  # fmt: skip
# Logs, and what is printed while the time passes.
TIMED: tuple[tuple[str, int], ...] = (
    ("-n -S -t 5 -l --log-prefix={place}/log", 15),
    ("-n -S -t 3 -c 3 -j 2 -l --log-prefix={place}/log", 15),
    ("-n -S -t 3 -l --max-tries=3 -R 2000 --log-prefix={place}/log", 15),
    ("-n -S -t 40 -l --sampling-rate=0.5 --random-seed=1 --log-prefix={place}/log", 15),
    ("-n -t 3 -f {place}/d.sql -l --log-prefix={place}/log", 15),
    ("-n -t 2 -f {place}/d.sql -f {place}/k.sql -l --failures-detailed --max-tries=2 "
     "--random-seed=4 --log-prefix={place}/log", 15),
    ("-n -S -T 2 -R 50 -P 1 --max-tries=2 -c 2 -j 2", 15),
    ("-n -S -t 200 -R 100 -L 500 -P 1 --progress-timestamp", 15),
)  # fmt: skip
FAILING = {
    "e.sql": "SELECT 1 / (:client_id - 1);\n",
    "d.sql": "SELECT pg_sleep(0);\nDO $$BEGIN RAISE SQLSTATE '40001' USING MESSAGE = 'x'; END$$;\n",
    "k.sql": "BEGIN;\nDO $$BEGIN RAISE SQLSTATE '40P01' USING MESSAGE = 'y'; END$$;\nEND;\n",
}
# Failures and what becomes of the client; some print for each of several clients in any order.
FAILURES: tuple[str, ...] = (
    "-n -t 2 -f {place}/d.sql", "-n -t 2 -f {place}/k.sql",
    "-n -t 2 -f {place}/d.sql --max-tries=3",
    "-n -t 2 -f {place}/k.sql --max-tries=2 --failures-detailed -r",
    "-n -t 1 -f {place}/d.sql --max-tries=2 --verbose-errors",
    "-n -t 1 -f {place}/k.sql --verbose-errors",
    "-n -t 2 -f {place}/d.sql -f {place}/k.sql --failures-detailed -r --random-seed=4",
    "-n -t 1 -f {place}/k.sql --max-tries=3 --verbose-errors -M prepared",
    "-n -t 1 -f {place}/e.sql -c 2", "-n -t 1 -f {place}/e.sql -c 2 -r",
    "-n -t 2 -C -f {place}/d.sql",
    "-n -t 2 -f {place}/d.sql -L 1000 --max-tries=2",
    "-n -t 2 -f {place}/d.sql -R 1000 --max-tries=2",
)  # fmt: skip
INITIALISATIONS: tuple[tuple[str, int], ...] = (
    ("-i", 15), ("-i -I dtg", 15), ("-i -n", 15), ("-i -q", 15), ("-i -F 80", 15),
    ("-i --foreign-keys", 15), ("-i -I dtGvpf", 15), ("-i --partitions=3", 15), ("-i -s 2", 15),
    ("-i --partitions=2 --partition-method=hash --foreign-keys", 15), ("-i --unlogged-tables", 15),
    ("-i -I gg", 15), ("-i -I d", 15), ("-i -I p", 15), ("-i -I dt", 15), ("-i -I tt", 15),
    ("-i -I g", 15), ("-i -I 'd t'", 15), ("-i --tablespace=nosuch", 15), ("-i -s 1 -I dtGp", 15),
    ("-i -I dtp --index-tablespace=pg_default --tablespace=pg_default", 15),
    ("-i --unlogged-tables --partitions=2", 18),
)  # fmt: skip
MADE = """
DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history;
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp,
    filler char(22));
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84));
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84));
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88));
"""
# Columns, constraints and contents; the last only of tables that are there.
LEFT = """
SELECT c.relname, c.relkind::text, c.relpersistence::text, c.reloptions::text, a.attname::text,
       a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relname LIKE 'pgbench%' AND a.attnum > 0
UNION ALL
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', 0, '', null
FROM pg_constraint WHERE conname LIKE 'pgbench%' AND contype IN ('p', 'f')
UNION ALL
SELECT relname, table_to_xml(oid, true, false, '')::text, '', '', '', 0, '', null
FROM pg_class WHERE relname IN ('pgbench_branches', 'pgbench_tellers', 'pgbench_history')
UNION ALL
SELECT relname, query_to_xml('SELECT count(*), min(aid), max(aid), sum(aid), sum(bid),
       sum(abalance), min(filler), max(filler) FROM ' || relname, true, false, '')::text,
       pg_get_expr(relpartbound, oid), '', '', 0, '', null
FROM pg_class WHERE relname LIKE 'pgbench_accounts%' AND relkind IN ('r', 'p')
ORDER BY 1, 6, 2
"""


def expression_cases() -> list[Case]:
    """Scripts of typed expressions, and expressions alone."""
    cases = [
        Case(
            name=f"typed expressions {seed}",
            words=f"{ONE} {DEFINED} -f e.sql",
            scripts={"e.sql": typed_script(seed, 25)},
        )
        for seed in range(20)
    ]
    cases += [
        Case(
            name=f"expression {text}",
            words=f"{ONE} {DEFINED} -f e.sql",
            scripts={"e.sql": f"\\set v debug({text})\n"},
        )
        for text in single_expressions(seed=7, wild=100)
    ]
    return cases


def script_cases() -> list[Case]:
    """Hand-written scripts; what they write is compared, too."""

    def case(name: str, text: str, protocol: str, since: int = 15) -> Case:
        words = f"{ONE} -M {protocol} --random-seed=3 -f s.sql"
        scripts = {"s.sql": text}
        return Case(
            name=f"{name} ({protocol})",
            words=words,
            scripts=scripts,
            rows=DRAWN,
            before=EMPTY,
            since=since,
        )

    cases = [case(name, text, "simple") for name, text in SCRIPTS]
    cases += [case(name, text, "extended") for name, text in PIPELINES]
    prepared = [(name, text) for name, text in SCRIPTS if name not in SIMPLE_ONLY]
    cases += [case(name, text, "prepared") for name, text in (*prepared, *PIPELINES)]
    cases += [case(name, text, "prepared", 17) for name, text in SYNC_PIPELINES]
    return cases


def option_cases() -> list[Case]:
    """Option sets that are refused, that run, and that fail on the way."""
    cases = [Case(name="refused", words=words, scripts=S) for words in REFUSED]
    cases += [Case(name="run", words=words, scripts=S, stdin="SELECT 2;\n") for words in RUNS]
    cases += [Case(name="failure", words=words, scripts=FAILING) for words in FAILURES]
    cases += [
        Case(
            name="seed of the environment",
            words="-n -t 1 -S",
            environment={"PGBENCH_RANDOM_SEED": seed},
        )
        for seed in ("5", "abc", "time1", "18446744073709551615", "-1", "")
    ]
    cases += [
        Case(name="debug", words="-n -t 1 -d -f s.sql", scripts=S, until=16),
        Case(name="exit on abort", words="-n -t 1 --exit-on-abort -f e.sql",
             scripts={"e.sql": "SELECT 1/0;"}, since=17),
        Case(name="dbname", words="-n -t 1 -d nosuchdatabase -S", since=17),
    ]  # fmt: skip
    return cases


def timed_cases() -> list[Case]:
    """Logs, progress, and runs with a length in seconds."""
    return [
        Case(name="timed", words=words, scripts=S | FAILING, since=since) for words, since in TIMED
    ]


def initialisation_cases() -> list[Case]:
    """`-i` in its kinds, each with tables there that somebody made."""
    return [
        Case(name="initialisation", words=words, rows=LEFT, before=MADE, since=since)
        for words, since in INITIALISATIONS
    ]
