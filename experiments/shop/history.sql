-- What a customer bought last.
\set customer random(1, :customers)
SELECT p.at, p.total, l.quantity, l.price, i.name
FROM (
    SELECT id, at, total FROM purchase WHERE customer = :customer ORDER BY at DESC LIMIT 5
) p
JOIN purchase_line l ON l.purchase = p.id
JOIN product i ON i.id = l.product
ORDER BY p.at DESC, l.line;
