-- Keep episodes, all that are new or none; those with known ids are left out.
-- As in commit.lua everything is looked at first and written last.
--
-- KEYS: head, episodes, ids, index, ages, volume.
-- ARGV: format; then id, body, seconds when it began, and terms of each, which are netstrings.
-- Answers {'kept', how many} or why not: {'format', ...}, {'damaged', key}.
local head, episodes, ids, index, ages, volume = unpack(KEYS)
local format = redis.call('HGET', head, 'format')
if format ~= ARGV[1] then
  return {'format', format or ''}
end
local held = redis.call('HMGET', volume, 'last', 'count', 'bytes')
local last, count, bytes = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
if not (last and count and bytes) then
  return {'damaged', volume}
end
redis.call('XLEN', episodes)
redis.call('ZCARD', index)
redis.call('ZCARD', ages)
local refusal = forbidden({
  {'XADD', episodes, '*', 'a', 1}, {'HSET', ids, 'a', 1}, {'ZADD', ages, 0, 'a'},
  {'ZADD', index, 0, 'a'}, {'HSET', volume, 'a', 1},
})
if refusal then
  return refusal
end

local new, seen = {}, {}
for at = 2, #ARGV, 4 do
  local id = ARGV[at]
  if not seen[id] and redis.call('HEXISTS', ids, id) == 0 then
    seen[id] = true
    new[#new + 1] = at
  end
end

for i, at in ipairs(new) do
  local id, body, began, terms = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local number = string.format('%.0f', last + i)
  local padded = string.format('%016.0f', last + i)
  redis.call('XADD', episodes, number .. '-0', 'id', id, 'body', body, 'terms', terms)
  redis.call('HSET', ids, id, number)
  redis.call('ZADD', ages, began, padded)
  local from = 1
  while from <= #terms do
    local colon = string.find(terms, ':', from, true)
    local to = colon + tonumber(string.sub(terms, from, colon - 1))
    redis.call('ZADD', index, 0, string.sub(terms, colon + 1, to) .. '\0' .. padded)
    from = to + 1
  end
  bytes = bytes + #body
end
if #new > 0 then
  redis.call('HSET', volume, 'last', string.format('%.0f', last + #new),
    'count', string.format('%.0f', count + #new), 'bytes', string.format('%.0f', bytes))
end
return {'kept', #new}
