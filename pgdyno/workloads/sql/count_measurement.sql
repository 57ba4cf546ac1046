-- Counts one more measurement on these data; returns how many there were before it. Cheap.
update pgdyno.state
set measurements = measurements + 1
where workload = %(workload)s
returning measurements - 1
