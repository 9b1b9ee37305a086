-- Gives the key back, if it is one's own.
--
-- KEYS   [1] candidate
-- ARGV   [1] holder
-- result "left", or "foreign"

if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'foreign' end
redis.call('DEL', KEYS[1])
return 'left'
