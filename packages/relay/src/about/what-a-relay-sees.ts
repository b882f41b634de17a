/**
 * What a home relay can and cannot do, for its visitors: the words of SECURITY.md, section "Your home
 * relay". A test holds both together.
 */
export const relayCan: readonly string[] = [
  'see who writes to whom, from which device, when, and how long the message is',
  'see your IP address, your devices, your profile, who has a grant from you',
  "refuse service, delay or drop messages, hide that one came, hide a change of your contact's devices for a time",
  'keep what it was told to delete, and claim any time and order of what it received',
  'lose what it stored, if it is restored from a backup',
];

export const relayCannot: readonly string[] = [
  'read messages and attachments: they are encrypted for the devices of the two accounts',
  'change a message or put in one of its own',
  'add a device to an account, or take one out',
];
