-- The nine tables of TPC-C clause 1.3, without keys (indexes.sql adds them after the load).
--
-- Types follow common practice: integer and smallint keys, exact numeric money, character
-- data of the specification's lengths. Fixed-width columns come first, so that reaching
-- the ones that change does not walk over strings. What every transaction adds to is wide enough
-- for a year at a million new orders a minute on one warehouse.
--
-- fillfactor: PostgreSQL writes a new version of an updated row. If its page has room and no
-- indexed column changes (none does here), indexes stay untouched (a "HOT" update) and the
-- room of the old version is reused at the next visit. So every table that is updated keeps
-- room for a version or more; without it each update adds entries to every index, and the
-- data to be cached spread out over the run. item, history and new_order are never updated.

-- Two dozen bytes of counters in a row of 120, updated by every payment of the warehouse: one
-- row per page and room for some 60 versions, so that pruning is rare and users of different
-- warehouses never meet on a page.
CREATE TABLE hotset_tpcc.warehouse (
    w_id       integer        NOT NULL,
    w_ytd      numeric(18, 2) NOT NULL,
    w_tax      numeric(4, 4)  NOT NULL,
    w_name     varchar(10)    NOT NULL,
    w_street_1 varchar(20)    NOT NULL,
    w_street_2 varchar(20)    NOT NULL,
    w_city     varchar(20)    NOT NULL,
    w_state    char(2)        NOT NULL,
    w_zip      char(9)        NOT NULL
) WITH (fillfactor = 10);

-- Updated by every new-order and payment: as above, at ten rows per warehouse.
CREATE TABLE hotset_tpcc.district (
    d_w_id      integer        NOT NULL,
    d_next_o_id integer        NOT NULL,
    d_id        smallint       NOT NULL,
    d_ytd       numeric(18, 2) NOT NULL,
    d_tax       numeric(4, 4)  NOT NULL,
    d_name      varchar(10)    NOT NULL,
    d_street_1  varchar(20)    NOT NULL,
    d_street_2  varchar(20)    NOT NULL,
    d_city      varchar(20)    NOT NULL,
    d_state     char(2)        NOT NULL,
    d_zip       char(9)        NOT NULL
) WITH (fillfactor = 10);

-- Rows of about 570 bytes, 14 to a page: 10 % is room for one version, which is enough
-- because payments spread over 30,000 customers per warehouse.
CREATE TABLE hotset_tpcc.customer (
    c_w_id         integer        NOT NULL,
    c_id           integer        NOT NULL,
    c_payment_cnt  integer        NOT NULL,
    c_delivery_cnt integer        NOT NULL,
    c_d_id         smallint       NOT NULL,
    c_since        timestamp      NOT NULL,
    c_credit       char(2)        NOT NULL,
    c_credit_lim   numeric(12, 2) NOT NULL,
    c_discount     numeric(4, 4)  NOT NULL,
    c_balance      numeric(18, 2) NOT NULL,
    c_ytd_payment  numeric(18, 2) NOT NULL,
    c_last         varchar(16)    NOT NULL,
    c_first        varchar(16)    NOT NULL,
    c_middle       char(2)        NOT NULL,
    c_street_1     varchar(20)    NOT NULL,
    c_street_2     varchar(20)    NOT NULL,
    c_city         varchar(20)    NOT NULL,
    c_state        char(2)        NOT NULL,
    c_zip          char(9)        NOT NULL,
    c_phone        char(16)       NOT NULL,
    c_data         varchar(500)   NOT NULL
) WITH (fillfactor = 90);

CREATE TABLE hotset_tpcc.history (
    h_c_id   integer       NOT NULL,
    h_c_w_id integer       NOT NULL,
    h_w_id   integer       NOT NULL,
    h_c_d_id smallint      NOT NULL,
    h_d_id   smallint      NOT NULL,
    h_date   timestamp     NOT NULL,
    h_amount numeric(6, 2) NOT NULL,
    h_data   varchar(24)   NOT NULL
);

CREATE TABLE hotset_tpcc.new_order (
    no_w_id integer  NOT NULL,
    no_o_id integer  NOT NULL,
    no_d_id smallint NOT NULL
);

-- Updated once in its life, by the delivery.
CREATE TABLE hotset_tpcc.orders (
    o_w_id       integer   NOT NULL,
    o_id         integer   NOT NULL,
    o_c_id       integer   NOT NULL,
    o_d_id       smallint  NOT NULL,
    o_carrier_id smallint,
    o_ol_cnt     smallint  NOT NULL,
    o_all_local  smallint  NOT NULL,
    o_entry_d    timestamp NOT NULL
) WITH (fillfactor = 90);

-- Updated once in its life, all lines of an order together and those lie side by side:
-- room for the new versions of a whole order.
CREATE TABLE hotset_tpcc.order_line (
    ol_w_id        integer       NOT NULL,
    ol_o_id        integer       NOT NULL,
    ol_d_id        smallint      NOT NULL,
    ol_number      smallint      NOT NULL,
    ol_i_id        integer       NOT NULL,
    ol_supply_w_id integer       NOT NULL,
    ol_quantity    smallint      NOT NULL,
    ol_delivery_d  timestamp,
    ol_amount      numeric(6, 2) NOT NULL,
    ol_dist_info   char(24)      NOT NULL
) WITH (fillfactor = 85);

CREATE TABLE hotset_tpcc.item (
    i_id    integer       NOT NULL,
    i_im_id integer       NOT NULL,
    i_price numeric(5, 2) NOT NULL,
    i_name  varchar(24)   NOT NULL,
    i_data  varchar(50)   NOT NULL
);

-- The table a new-order touches most: ten scattered rows of about 330 bytes. Room for two
-- versions per page of 22 rows.
CREATE TABLE hotset_tpcc.stock (
    s_w_id       integer     NOT NULL,
    s_i_id       integer     NOT NULL,
    s_order_cnt  bigint      NOT NULL,
    s_ytd        bigint      NOT NULL,
    s_remote_cnt integer     NOT NULL,
    s_quantity   smallint    NOT NULL,
    s_dist_01    char(24)    NOT NULL,
    s_dist_02    char(24)    NOT NULL,
    s_dist_03    char(24)    NOT NULL,
    s_dist_04    char(24)    NOT NULL,
    s_dist_05    char(24)    NOT NULL,
    s_dist_06    char(24)    NOT NULL,
    s_dist_07    char(24)    NOT NULL,
    s_dist_08    char(24)    NOT NULL,
    s_dist_09    char(24)    NOT NULL,
    s_dist_10    char(24)    NOT NULL,
    s_data       varchar(50) NOT NULL
) WITH (fillfactor = 90);
