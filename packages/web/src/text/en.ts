/** Every text of the app, in English. Other languages have the same members. */

const plural = new Intl.PluralRules('en');
const counted = (count: number, one: string, other: string) =>
  `${count} ${plural.select(count) === 'one' ? one : other}`;

export const en = {
  language: 'en',
  /** The app's own name, where no relay's name stands. */
  app: 'Posthouse',
  starting: 'Opening…',
  failed: 'This page cannot go on',
  reload: 'Reload',
  showAll: 'Show all',
  tryingAgain: 'Something could not be read. It is tried again.',
  partMissing: 'This part of the app could not be loaded.',
  back: 'Back',
  cancel: 'Cancel',
  copy: 'Copy',
  copied: 'Copied',
  details: 'Details',
  more: 'More',
  share: 'Share',
  offline: 'Not connected. Messages wait here and leave when you are online.',
  connecting: 'Connecting…',
  newVersion: 'A new version is ready.',
  useNewVersion: 'Use it',

  welcome: (relay: string) => `Welcome to ${relay}`,
  welcomeText:
    'Your account is a key that only you have. The relay delivers your messages and cannot read them.',
  newAccount: 'New account',
  restore: 'I have a backup',
  join: 'I have this account on another device',
  inviteCode: 'Invite code of this relay',
  inviteCodeHelp: 'The operator gives you one.',
  creating: 'Making your account…',

  backup: 'Save a backup',
  password: 'Password',
  passwordAgain: 'Password again',
  passwordShort: 'At least ten characters. Four words by chance are good.',
  passwordDiffers: 'The two are not the same.',
  noBackup: 'There is no backup of your account yet.',

  conversations: 'Conversations',
  requests: 'Requests',
  search: 'Search',
  none: 'Nobody here yet. Invite somebody, or open an invite that you got.',
  nothingFound: 'Nothing found',
  add: 'Add a person',
  settings: 'Settings',
  notes: 'Notes to myself',
  unread: (count: number) => counted(count, 'unread message', 'unread messages'),
  waiting: (count: number) => counted(count, 'message waits', 'messages wait'),
  you: 'You',
  attachment: 'Attachment',
  asks: 'asks to write to you',
  accept: 'Accept',
  decline: 'Decline',

  write: 'Write a message',
  send: 'Send',
  reply: 'Reply',
  replyingTo: 'Reply to',
  older: 'Earlier messages',
  messages: 'Messages',
  newMessages: (count: number) => counted(count, 'new message', 'new messages'),
  noMessages: 'No messages yet',
  notContact: 'You cannot write to each other yet.',
  requestSent: 'Your request was sent. You can write when it is accepted.',
  today: 'Today',
  yesterday: 'Yesterday',
  retry: 'Try again',
  remove: 'Remove',
  status: {
    waiting: 'waiting',
    sending: 'sending',
    delivering: 'sent',
    target_accepted: 'at their relay',
    rejected: 'refused',
    failed: 'failed',
    cancelled: 'cancelled',
  },
  notSent: 'Not sent.',
  blockedLink: 'leads nowhere',
  image: 'Image',

  kinds: { person: 'Person', group: 'Group', channel: 'Channel' },
  openLink: { group: 'Open the invitation', channel: 'Open the channel' },
  newGroup: 'New group',
  newChannel: 'New channel',
  localName: 'Name on your devices',
  save: 'Save',

  connected: 'Connected',
};

export type Texts = typeof en;
