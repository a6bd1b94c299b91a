-- Stock-level (clause 2.8.2): how many items of a district's last 20 orders are low in stock.
--
-- The hints: the bounds are variables, so the server guesses thousands of lines instead of 200 and
-- may scan the warehouse's whole stock, in parallel. HammerDB has the same.
CREATE PROCEDURE hotset_tpcc.slev @w_id int, @d_id int, @threshold int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @next int, @low int;
    BEGIN TRANSACTION;
    SELECT @next = d_next_o_id FROM hotset_tpcc.district WHERE d_w_id = @w_id AND d_id = @d_id;
    -- A stock row counts once, however many lines ask for its item.
    SELECT @low = count(DISTINCT s_i_id)
      FROM hotset_tpcc.order_line JOIN hotset_tpcc.stock ON s_w_id = @w_id AND s_i_id = ol_i_id
     WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id >= @next - 20 AND ol_o_id < @next
       AND s_quantity < @threshold
    OPTION (ORDER GROUP, LOOP JOIN, MAXDOP 1);
    COMMIT TRANSACTION;
    SELECT @low;
END;
