ALTER TABLE product ADD PRIMARY KEY (id);
ALTER TABLE customer ADD PRIMARY KEY (id);
ALTER TABLE purchase ADD PRIMARY KEY (id);
ALTER TABLE purchase_line ADD PRIMARY KEY (purchase, line);
CREATE INDEX purchase_by_customer ON purchase (customer);
CREATE INDEX review_by_product ON review (product);
