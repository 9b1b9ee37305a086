-- The leader keeps the key that chooses the candidate; a key that was lost becomes its own again.
--
-- KEYS   [1] candidate
-- ARGV   [1] holder, [2] TTL in ms
-- result "kept", or "foreign" when somebody else has the key

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 'foreign' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'kept'
