import { limit, period } from './limit-kinds.ts';

/** Limits of which accounts come to be at home here. */
export const accountLimits = {
  registrationInvites: limit(10_000, 'Invites stored at once (03 §4.3).'),
  registrationInviteNote: limit(256, "Bytes of the operator's remark about an invite."),
  claimsOfInvite: limit(
    1_000,
    'Accounts that showed an invite and are not here yet; one more replaces the oldest.',
  ),
  allowedAccounts: limit(100_000, 'Accounts that the operator let in and that are not here yet.'),
  registrationRequests: limit(10_000, 'Accounts that wait for approval.'),
  registrationRequestsPerAddress: limit(20, 'Accounts of one address that wait for approval.'),
  registrationRequestPeriod: period(604_800, 'Seconds for which an account waits for approval.'),
};
