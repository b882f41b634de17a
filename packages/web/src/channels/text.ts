/** What the screens of channels say. */
import { inLanguage } from '../text/index.ts';

const en = {
  name: 'Name',
  description: 'What it is about',
  create: 'Make the channel',
  createText:
    'A channel is public: whoever has its link can read it. You and the moderators that you choose write.',
  save: 'Save',
  facts: 'Name and description',
  link: 'Link to this channel',
  linkText: 'Whoever has it can read the channel, without an account, too.',
  owner: 'Owner',
  moderator: 'Moderator',
  writers: 'Who may post',
  addModerator: 'Make moderator',
  removeModerator: 'Take the role away',
  choose: 'Choose a person',
  follow: 'Follow',
  open: 'Open the channel',
  unfollow: 'Do not follow any more',
  unfollowText: 'What was read is removed from this device.',
  close: 'Close the channel',
  closeText: 'Nobody can post any more; what was posted stays. This cannot be undone.',
  closed: 'This channel is closed. Nobody can post to it.',
  readOnly: 'Only its owner and moderators post here.',
  notFollowed: 'You do not follow this channel.',
  creating: 'The channel is being made…',

  post: 'Post',
  edit: 'Change the text',
  editText: 'The old text stays readable for whoever read it.',
  edited: 'changed',
  remove: 'Delete the post',
  removeText: 'Everyone’s copy is removed with their next look. This cannot be undone.',
  reason: 'Reason',
  publicReason: 'Reason, which everyone can read (may be empty)',
  report: 'Report',
  reportText: 'The operator of the channel’s relay reads this, and nobody else.',
  reported: 'The report was sent.',
  gone: 'This post is not there any more.',

  title: 'Channel',
  reading: 'The channel is being read…',
  earlier: 'Earlier posts',
  noPosts: 'No posts yet',
  of: (owner: string) => `A channel of ${owner}`,
  toFollow: 'Make an account to follow',
  visitor:
    'You read as a visitor. For this, your browser made a key at this relay that is not connected with you.',
  needsInvite:
    'This relay shows channels to its accounts only, and takes new accounts with an invite code.',

  notes: {
    created: 'The channel was made',
    renamed: (name: string) => `The channel is now called “${name}”`,
    changed: 'Description or moderators changed',
    closed: 'The channel was closed',
    deleted: (by: string) => `${by} deleted a post`,
    reason: (reason: string) => `: ${reason}`,
    gap: 'Something is not available here: deleted, or not given by the host',
    refused: 'Something here does not verify and is not used',
  },
};

const de: typeof en = {
  name: 'Name',
  description: 'Worum es geht',
  create: 'Kanal anlegen',
  createText:
    'Ein Kanal ist öffentlich: Wer seinen Link hat, kann ihn lesen. Du und wen du zur Moderation bestimmst, schreiben.',
  save: 'Speichern',
  facts: 'Name und Beschreibung',
  link: 'Link zu diesem Kanal',
  linkText: 'Wer ihn hat, kann den Kanal lesen, auch ohne Konto.',
  owner: 'Besitz',
  moderator: 'Moderation',
  writers: 'Wer schreiben darf',
  addModerator: 'Zur Moderation machen',
  removeModerator: 'Rolle nehmen',
  choose: 'Person wählen',
  follow: 'Folgen',
  open: 'Kanal öffnen',
  unfollow: 'Nicht mehr folgen',
  unfollowText: 'Was gelesen wurde, wird von diesem Gerät entfernt.',
  close: 'Kanal schließen',
  closeText:
    'Niemand kann dann mehr etwas veröffentlichen; was da ist, bleibt. Das lässt sich nicht zurücknehmen.',
  closed: 'Dieser Kanal ist geschlossen. Niemand kann in ihm schreiben.',
  readOnly: 'Hier schreiben nur Besitz und Moderation.',
  notFollowed: 'Du folgst diesem Kanal nicht.',
  creating: 'Der Kanal wird angelegt …',

  post: 'Beitrag',
  edit: 'Text ändern',
  editText: 'Wer den alten Text gelesen hat, kann ihn noch haben.',
  edited: 'geändert',
  remove: 'Beitrag löschen',
  removeText:
    'Bei allen verschwindet er, sobald sie wieder nachsehen. Das lässt sich nicht zurücknehmen.',
  reason: 'Grund',
  publicReason: 'Grund, den alle lesen können (darf leer sein)',
  report: 'Melden',
  reportText: 'Das liest, wer das Relay des Kanals betreibt, und sonst niemand.',
  reported: 'Die Meldung ist abgeschickt.',
  gone: 'Diesen Beitrag gibt es nicht mehr.',

  title: 'Kanal',
  reading: 'Der Kanal wird gelesen …',
  earlier: 'Frühere Beiträge',
  noPosts: 'Noch keine Beiträge',
  of: (owner) => `Ein Kanal von ${owner}`,
  toFollow: 'Konto anlegen, um zu folgen',
  visitor:
    'Du liest als Gast. Dafür hat dein Browser bei diesem Relay einen Schlüssel angelegt, der nicht mit dir verbunden ist.',
  needsInvite:
    'Dieses Relay zeigt Kanäle nur seinen Konten, und nimmt neue Konten mit einem Einladungscode.',

  notes: {
    created: 'Der Kanal wurde angelegt',
    renamed: (name) => `Der Kanal heißt jetzt „${name}“`,
    changed: 'Beschreibung oder Moderation sind geändert',
    closed: 'Der Kanal wurde geschlossen',
    deleted: (by) => `${by} hat einen Beitrag gelöscht`,
    reason: (reason) => `: ${reason}`,
    gap: 'Hier fehlt etwas: gelöscht, oder vom Gastgeber nicht herausgegeben',
    refused: 'Etwas hier lässt sich nicht prüfen und wird nicht verwendet',
  },
};

export const text = inLanguage({ en, de });
