-- Adds what the store says is ready to a queue's window; a window of another epoch is emptied first.
--
-- KEYS   [1] window, [2] epoch, [3] cut
-- ARGV   [1] epoch of the caller, [2] most hints kept, [3] channel, [4] what to announce,
--        [5] "all", or "more" when more is ready behind these, then weight and member of each hint
-- result "refilled"

local window, cutKey, most = KEYS[1], KEYS[3], tonumber(ARGV[2])
local isForeign = redis.call('GET', KEYS[2]) ~= ARGV[1]
-- First, and always: a full server refuses a refill, also one that brings nothing.
redis.call('SET', KEYS[2], ARGV[1])
if isForeign then redis.call('DEL', window, cutKey) end
addAll(window, ARGV, 6)
if ARGV[5] == 'all' then
  redis.call('DEL', cutKey)
else
  local cut = redis.call('GET', cutKey)
  local last = ARGV[#ARGV]
  -- What stands before an older cut was there already, and in its order.
  if not cut or isBehind(cut, ARGV[#ARGV - 1], last) then
    cutBehind(window, cutKey, redis.call('ZRANK', window, last) + 1)
  end
end
if redis.call('ZCARD', window) > most then cutBehind(window, cutKey, most) end
if #ARGV > 5 then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
return 'refilled'
