-- How many hints a queue's window holds.
--
-- KEYS   [1] window, [2] epoch
-- ARGV   [1] epoch of the caller
-- result a number; 0 when the window belongs to another epoch

if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('ZCARD', KEYS[1])
