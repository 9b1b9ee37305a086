-- Adds what the store says is ready to a queue's window; a window of another epoch is emptied first.
--
-- KEYS   [1] window, [2] epoch
-- ARGV   [1] epoch of the caller, [2] channel, [3] what to announce, then weight and member of each hint
-- result "refilled"

if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], ARGV[1])
end
for i = 4, #ARGV, 1000 do
  redis.call('ZADD', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
if #ARGV > 3 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return 'refilled'
