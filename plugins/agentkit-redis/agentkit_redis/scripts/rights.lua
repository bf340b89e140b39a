-- Stands before each script that writes. Since 7.0 a server tells whether the user may do
-- something; one right that was taken away in the meantime would tear what is written.
-- Answers an error for the first call that is forbidden, which the script is to return.
local function forbidden(calls)
  for _, call in ipairs(redis.acl_check_cmd and calls or {}) do
    if not redis.acl_check_cmd(unpack(call)) then
      return redis.error_reply('NOPERM this user may not run ' .. call[1] .. ' on ' .. call[2])
    end
  end
end

