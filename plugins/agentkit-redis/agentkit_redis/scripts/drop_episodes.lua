-- Let the oldest episodes go that break a bound, at most so many at a time: nobody waits long.
--
-- KEYS: head, episodes, ids, index, ages, volume.
-- ARGV: format, at most how many, then the bounds, each empty for none: seconds before which an
--       episode must not have begun, how many may stay.
-- Answers {'dropped', how many, bytes} or why not: {'format', ...}, {'damaged', key}.
local head, episodes, ids, index, ages, volume = unpack(KEYS)
local format = redis.call('HGET', head, 'format')
if format ~= ARGV[1] then
  return {'format', format or ''}
end
local oldest, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local held = redis.call('HMGET', volume, 'count', 'bytes')
local count, bytes = tonumber(held[1]), tonumber(held[2])
if not (count and bytes) then
  return {'damaged', volume}
end
redis.call('XLEN', episodes)
redis.call('HLEN', ids)
redis.call('ZCARD', index)
local refusal = forbidden({
  {'XDEL', episodes, '1-0'}, {'HDEL', ids, 'a'}, {'ZREM', ages, 'a'}, {'ZREM', index, 'a'},
  {'HSET', volume, 'a', 1},
})
if refusal then
  return refusal
end

local dropped, freed = 0, 0
local found = redis.call('ZRANGE', ages, 0, tonumber(ARGV[2]) - 1, 'WITHSCORES')
for at = 1, #found, 2 do
  local padded = found[at]
  local goes = (oldest and tonumber(found[at + 1]) < oldest)
    or (most and count - dropped > most)
  if not goes then
    break
  end
  local id = string.format('%.0f-0', tonumber(padded))
  local entry = redis.call('XRANGE', episodes, id, id)[1]
  if entry then
    local terms, from = entry[2][6], 1
    while from <= #terms do
      local colon = string.find(terms, ':', from, true)
      local to = colon + tonumber(string.sub(terms, from, colon - 1))
      redis.call('ZREM', index, string.sub(terms, colon + 1, to) .. '\0' .. padded)
      from = to + 1
    end
    redis.call('HDEL', ids, entry[2][2])
    redis.call('XDEL', episodes, id)
    freed = freed + #entry[2][4]
  end
  redis.call('ZREM', ages, padded)
  dropped = dropped + 1
end
if dropped > 0 then
  redis.call('HSET', volume, 'count', string.format('%.0f', count - dropped),
    'bytes', string.format('%.0f', bytes - freed))
end
return {'dropped', dropped, freed}
