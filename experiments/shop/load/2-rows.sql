-- The same rows in each load.
SELECT setseed(0.42);

INSERT INTO product
SELECT n, 1 + n % 500, 'Product ' || n, repeat(md5(n::text), 6),
    round((1 + 199 * random())::numeric, 2), 1000
FROM generate_series(1, 200000) n;

INSERT INTO customer
SELECT n, 'Customer ' || n, 'customer' || n || '@example.com', repeat(md5(n::text), 3)
FROM generate_series(1, 150000) n;

INSERT INTO purchase (customer, at, total)
SELECT 1 + floor(150000 * random())::integer,
    timestamptz '2026-01-01 00:00Z' + n * interval '1 minute',
    round((5 + 495 * random())::numeric, 2)
FROM generate_series(1, 400000) n;

INSERT INTO purchase_line
SELECT p, line, 1 + floor(200000 * random())::integer, 1 + floor(3 * random())::integer,
    round((1 + 199 * random())::numeric, 2)
FROM generate_series(1, 400000) p, generate_series(1, 3) line;

INSERT INTO review
SELECT 1 + floor(200000 * random())::integer, 1 + floor(150000 * random())::integer,
    1 + floor(5 * random())::integer, repeat(md5(n::text), 5)
FROM generate_series(1, 250000) n;
