-- The page of a product, with some of its reviews.
\set product random(1, :products)
SELECT name, description, price, stock FROM product WHERE id = :product;
SELECT c.name, r.stars, r.words
FROM review r JOIN customer c ON c.id = r.customer
WHERE r.product = :product
LIMIT 10;
