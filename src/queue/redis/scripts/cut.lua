-- A window that cannot hold everything is cut: it remembers the last hint that belongs to it, as
-- "<weight> <member>", and takes none behind it until a refill. Otherwise newer hints would find room
-- that older ones did not, and be taken before them.

local function isBehind(cut, weight, member)
  local cutWeight, cutMember = string.match(cut, '^(%S+) (.*)$')
  local difference = tonumber(weight) - tonumber(cutWeight)
  return difference > 0 or (difference == 0 and member > cutMember)
end

local function cutBehind(window, cutKey, count)
  local last = redis.call('ZRANGE', window, count - 1, count - 1, 'WITHSCORES')
  redis.call('SET', cutKey, last[2] .. ' ' .. last[1])
  redis.call('ZREMRANGEBYRANK', window, count, -1)
end

local function addAll(window, hints, first)
  for i = first, #hints, 1000 do
    redis.call('ZADD', window, unpack(hints, i, math.min(i + 999, #hints)))
  end
end
