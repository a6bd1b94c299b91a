-- A purchase of two products, in one transaction.
\set customer random(1, :customers)
\set first random(1, :products / 2)
\set second random(:products / 2 + 1, :products)
BEGIN;
SELECT price FROM product WHERE id = :first \gset first_
SELECT price FROM product WHERE id = :second \gset second_
INSERT INTO purchase (customer, at, total)
VALUES (:customer, now(), :first_price::numeric + :second_price)
RETURNING id \gset purchase_
INSERT INTO purchase_line VALUES
    (:purchase_id, 1, :first, 1, :first_price),
    (:purchase_id, 2, :second, 1, :second_price);
UPDATE product SET stock = stock - 1 WHERE id = :first;
UPDATE product SET stock = stock - 1 WHERE id = :second;
COMMIT;
