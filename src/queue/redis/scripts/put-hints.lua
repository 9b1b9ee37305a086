-- Puts hints into a queue's window, unless it was filled for another epoch.
--
-- KEYS   [1] window, [2] epoch, [3] cut
-- ARGV   [1] epoch of the caller, [2] most hints kept, [3] channel, [4] what to announce,
--        [5] "aloud" or "if empty", then weight and member of each hint
-- result "put", or "foreign" when the window belongs to another epoch

local window, cutKey, most = KEYS[1], KEYS[3], tonumber(ARGV[2])
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'foreign' end

local before = redis.call('ZCARD', window)
local cut = redis.call('GET', cutKey)
if cut then
  local hints = {}
  for i = 6, #ARGV, 2 do
    if not isBehind(cut, ARGV[i], ARGV[i + 1]) then
      hints[#hints + 1] = ARGV[i]
      hints[#hints + 1] = ARGV[i + 1]
    end
  end
  addAll(window, hints, 1)
else
  addAll(window, ARGV, 6)
end
if redis.call('ZCARD', window) > most then cutBehind(window, cutKey, most) end
if before == 0 or ARGV[5] == 'aloud' then redis.call('PUBLISH', ARGV[3], ARGV[4]) end
return 'put'
