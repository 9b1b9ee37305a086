-- Puts hints into a queue's window, unless it was filled for another epoch.
--
-- KEYS   [1] window, [2] epoch
-- ARGV   [1] epoch of the caller, [2] most hints kept, [3] channel, [4] what to announce,
--        [5] "aloud" or "if empty", then weight and member of each hint
-- result "put", or "foreign" when the window belongs to another epoch

local window, epochKey = KEYS[1], KEYS[2]
if redis.call('GET', epochKey) ~= ARGV[1] then return 'foreign' end

local before = redis.call('ZCARD', window)
for i = 6, #ARGV, 1000 do
  redis.call('ZADD', window, unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
if before + (#ARGV - 5) / 2 > tonumber(ARGV[2]) then
  redis.call('ZREMRANGEBYRANK', window, tonumber(ARGV[2]), -1)
end
if before == 0 or ARGV[5] == 'aloud' then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
return 'put'
