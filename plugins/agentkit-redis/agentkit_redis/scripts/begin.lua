-- Begin a library under a prefix where there is none.
-- KEYS: all keys of the library, the head first, the volume of episodes second.
-- ARGV: the format that we write.
-- Answers {'is', format} or {'foreign', key}.
local head, volume = KEYS[1], KEYS[2]
local format = redis.call('HGET', head, 'format')
if format then
  return {'is', format}
end
for _, key in ipairs(KEYS) do
  if redis.call('EXISTS', key) == 1 then
    return {'foreign', key}
  end
end
redis.call('HSET', head, 'format', ARGV[1], 'version', 0, 'stamp', '', 'event', 0, 'hash', '')
redis.call('HSET', volume, 'last', 0, 'count', 0, 'bytes', 0)
return {'is', ARGV[1]}
