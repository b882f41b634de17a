/** What the screens of groups say. */
import type { GroupInvitePolicy, GroupRole } from '@posthouse/protocol';
import { inLanguage } from '../text/index.ts';

const count = (many: number, one: string, other: string) => (many === 1 ? one : `${many} ${other}`);

const en = {
  name: 'Name',
  description: 'What it is about',
  create: 'Make the group',
  createText: 'Members read and write; the relay keeps the order and cannot read the messages.',
  whoInvites: 'Who may invite others',
  policies: {
    administrators: 'The owner and administrators',
    members_targeted: 'All members, a person at a time',
    members_shareable: 'All members, also by link',
  } satisfies Record<GroupInvitePolicy, string>,
  roles: {
    owner: 'Owner',
    administrator: 'Administrator',
    member: 'Member',
  } satisfies Record<GroupRole, string>,
  facts: 'Name and rules',
  save: 'Save',

  invite: 'Invite',
  inviteLink: 'Make a link',
  inviteLinkText: 'Whoever has the link may ask to join. It is valid for a week.',
  inviteContact: 'Invite a contact',
  choose: 'Choose a person',
  invited: 'The invitation was sent as a message.',
  invitation: (name: string) => `Join the group “${name}”:`,
  openLinks: 'Invitations that are open',
  uses: (uses: number) => count(uses, 'used once', 'times used'),
  until: (day: string) => `until ${day}`,
  revoke: 'Withdraw',

  members: 'Members',
  you: 'you',
  more: 'More',
  makeAdministrator: 'Make administrator',
  makeMember: 'Take the role away',
  handOver: 'Make owner',
  handOverText: 'You become an ordinary member. Only the new owner can give it back.',
  remove: 'Remove',
  removeText:
    'The person may ask to join again. The key is changed afterwards if you are the owner.',
  ban: 'Ban',
  banText: 'The person is removed and cannot ask to join until you lift the ban.',
  banned: 'Banned',
  unban: 'Lift the ban',

  wantsIn: 'Asks to join',
  wantsAccess: 'Lost their keys, asks for access again',
  approve: 'Let in',
  giveAccess: 'Give access',
  refuse: 'Refuse',
  askFirst: 'Ask the person in another way whether this was them.',

  nickname: 'Your name in this group',
  nicknameHelp: 'Members see it. Empty: none.',
  keys: 'Keys',
  keysText:
    'Messages are sealed with a key that all members have. Who leaves or is removed still knows the key of their time: change it so that they cannot read on, even with the help of the host.',
  rotate: 'Change the key',
  rotated: 'The key was changed.',
  recover: 'Ask for access again',
  recoverText:
    'No device of yours has the key of this group. An administrator can give you a new one; messages written before stay unreadable here.',
  recoverySent: (day: string) => `You asked for access. It can be given until ${day}.`,

  leave: 'Leave the group',
  leaveText: 'You read nothing more of it. To return you have to ask again.',
  ownerCannotLeave: 'You are the owner: make somebody else owner before you leave.',
  close: 'Close the group',
  closeText: 'Nobody can write to it any more. This cannot be undone.',
  forget: 'Remove from the list',
  forgetApplication: 'Do not wait any more',

  notMember: 'You are not a member of this group any more.',
  closed: 'This group is closed. Nobody can write to it.',
  waitingForApproval: 'You asked to join. When somebody lets you in, the group opens here.',
  notRead: 'The group is being read…',
  noKey: 'This device has no key of this group yet, so messages cannot be read or sent here.',
  blocked:
    'The history of this group does not verify from here on: it was altered, or the host has a fault. Nothing later is used, and nothing is sent.',
  wentBack:
    'The host of this group was put back to an earlier state. Messages of that time may be missing for others; what this device read stays here.',
  wentBackOwner:
    'Members that were added or removed since may be wrong there. Hand it back to put that right.',
  wentBackLocked: 'Take the lock off this device to hand back what changed since.',
  wentBackMember: 'It goes on when its owner has handed back what changed since.',
  handBack: 'Hand the changes back',
  handedBack: 'The changes were handed back.',
  understood: 'Understood',

  waiting: 'Waiting for you',
  decide: (many: number) => count(many, 'one request to decide', 'requests to decide'),
  invitationOf: (from: string) => `${from} invites you to a group`,
  open: 'Look at it',
  decline: 'Decline',
  applied: 'you asked to join',

  sharedGroup: 'Invitation to a group',
  sharedHint: 'Name and description are what the host says.',
  size: (many: number) => count(many, 'one member', 'members'),
  apply: 'Ask to join',
  appliedNow: 'You asked to join. You see the group as soon as you are let in.',
  isMember: 'You are a member of this group.',
  openGroup: 'Open the group',
  badLink: 'This link leads to no group or channel. Ask for a new one.',

  notes: {
    created: 'The group was made',
    blocked: 'A message of a person whom you blocked',
    joined: (who: string) => `New member: ${who}`,
    left: (who: string) => `Left: ${who}`,
    removed: (who: string, by: string) => `Removed: ${who} (by ${by})`,
    banned: (who: string, by: string) => `Banned: ${who} (by ${by})`,
    unbanned: (who: string, by: string) => `Ban lifted: ${who} (by ${by})`,
    role: (who: string, role: string) => `New role of ${who}: ${role}`,
    rekeyed: (who: string) => `Access again, with a new key: ${who}`,
    renamed: (name: string) => `The group is now called “${name}”`,
    changed: 'The group’s description or rules changed',
    rotated: 'The key was changed: only present members can read what follows',
    epoch: 'The host began a new key period, because members changed',
    closed: 'The group was closed',
    nickname: (who: string, name: string) => `${who}: now called “${name}” here`,
    noNickname: (who: string) => `${who}: no name of this group any more`,
    pending: (who: string) => `A message of ${who}: its key is not on this device yet`,
    rejected: (who: string) => `A message of ${who} cannot be read`,
    unknown: (who: string) => `Something of ${who} that this app does not know`,
    invalid: 'Something here does not verify and is not used',
  },
};

const de: typeof en = {
  name: 'Name',
  description: 'Worum es geht',
  create: 'Gruppe anlegen',
  createText:
    'Mitglieder lesen und schreiben; das Relay hält die Reihenfolge und kann die Nachrichten nicht lesen.',
  whoInvites: 'Wer andere einladen darf',
  policies: {
    administrators: 'Besitzer und Verwaltung',
    members_targeted: 'Alle Mitglieder, eine Person nach der anderen',
    members_shareable: 'Alle Mitglieder, auch per Link',
  },
  roles: { owner: 'Besitz', administrator: 'Verwaltung', member: 'Mitglied' },
  facts: 'Name und Regeln',
  save: 'Speichern',

  invite: 'Einladen',
  inviteLink: 'Link erstellen',
  inviteLinkText: 'Wer den Link hat, darf um Aufnahme bitten. Er gilt eine Woche.',
  inviteContact: 'Kontakt einladen',
  choose: 'Person wählen',
  invited: 'Die Einladung ist als Nachricht abgeschickt.',
  invitation: (name) => `Komm in die Gruppe „${name}“:`,
  openLinks: 'Offene Einladungen',
  uses: (uses) => count(uses, 'einmal verwendet', 'mal verwendet'),
  until: (day) => `bis ${day}`,
  revoke: 'Zurückziehen',

  members: 'Mitglieder',
  you: 'du',
  more: 'Mehr',
  makeAdministrator: 'Verwaltung geben',
  makeMember: 'Rolle nehmen',
  handOver: 'Besitz übergeben',
  handOverText: 'Du wirst einfaches Mitglied. Nur wer den Besitz dann hat, kann ihn zurückgeben.',
  remove: 'Entfernen',
  removeText:
    'Die Person darf wieder um Aufnahme bitten. Bist du Besitzer, wird danach der Schlüssel gewechselt.',
  ban: 'Ausschließen',
  banText: 'Die Person wird entfernt und kann nicht um Aufnahme bitten, bis du das aufhebst.',
  banned: 'Ausgeschlossen',
  unban: 'Ausschluss aufheben',

  wantsIn: 'Bittet um Aufnahme',
  wantsAccess: 'Hat die Schlüssel verloren, bittet um neuen Zugang',
  approve: 'Aufnehmen',
  giveAccess: 'Zugang geben',
  refuse: 'Ablehnen',
  askFirst: 'Frage die Person auf anderem Weg, ob sie das war.',

  nickname: 'Dein Name in dieser Gruppe',
  nicknameHelp: 'Mitglieder sehen ihn. Leer: keiner.',
  keys: 'Schlüssel',
  keysText:
    'Nachrichten sind mit einem Schlüssel versiegelt, den alle Mitglieder haben. Wer geht oder entfernt wird, kennt den Schlüssel seiner Zeit weiter: Wechsle ihn, damit auch mit Hilfe des Gastgebers niemand mehr mitlesen kann.',
  rotate: 'Schlüssel wechseln',
  rotated: 'Der Schlüssel ist gewechselt.',
  recover: 'Um neuen Zugang bitten',
  recoverText:
    'Keines deiner Geräte hat den Schlüssel dieser Gruppe. Die Verwaltung kann dir einen neuen geben; was davor geschrieben wurde, bleibt hier unlesbar.',
  recoverySent: (day) => `Du hast um Zugang gebeten. Er kann bis ${day} gegeben werden.`,

  leave: 'Gruppe verlassen',
  leaveText: 'Du liest dann nichts mehr von ihr. Um zurückzukommen, musst du wieder fragen.',
  ownerCannotLeave: 'Die Gruppe gehört dir: Übergib sie, bevor du gehst.',
  close: 'Gruppe schließen',
  closeText: 'Niemand kann dann mehr in ihr schreiben. Das lässt sich nicht zurücknehmen.',
  forget: 'Aus der Liste nehmen',
  forgetApplication: 'Nicht mehr warten',

  notMember: 'Du bist nicht mehr Mitglied dieser Gruppe.',
  closed: 'Diese Gruppe ist geschlossen. Niemand kann in ihr schreiben.',
  waitingForApproval:
    'Du hast um Aufnahme gebeten. Sobald dich jemand aufnimmt, öffnet sich die Gruppe hier.',
  notRead: 'Die Gruppe wird gelesen …',
  noKey:
    'Dieses Gerät hat noch keinen Schlüssel dieser Gruppe. Nachrichten lassen sich hier weder lesen noch senden.',
  blocked:
    'Der Verlauf dieser Gruppe lässt sich ab hier nicht prüfen: Er wurde verändert, oder der Gastgeber hat einen Fehler. Späteres wird nicht verwendet, und nichts wird gesendet.',
  wentBack:
    'Der Gastgeber dieser Gruppe wurde auf einen früheren Stand zurückgesetzt. Nachrichten dieser Zeit können anderen fehlen; was dieses Gerät gelesen hat, bleibt hier.',
  wentBackOwner:
    'Wer seitdem aufgenommen oder entfernt wurde, stimmt dort vielleicht nicht. Gib die Änderungen zurück, damit es wieder stimmt.',
  wentBackLocked:
    'Nimm die Sperre von diesem Gerät, um zurückzugeben, was sich seitdem geändert hat.',
  wentBackMember: 'Es geht weiter, sobald zurückgegeben ist, was sich seitdem geändert hat.',
  handBack: 'Änderungen zurückgeben',
  handedBack: 'Die Änderungen sind zurückgegeben.',
  understood: 'Verstanden',

  waiting: 'Wartet auf dich',
  decide: (many) => count(many, 'eine Anfrage zu entscheiden', 'Anfragen zu entscheiden'),
  invitationOf: (from) => `${from} lädt dich in eine Gruppe ein`,
  open: 'Ansehen',
  decline: 'Ablehnen',
  applied: 'du hast um Aufnahme gebeten',

  sharedGroup: 'Einladung in eine Gruppe',
  sharedHint: 'Name und Beschreibung sind, was der Gastgeber sagt.',
  size: (many) => count(many, 'ein Mitglied', 'Mitglieder'),
  apply: 'Um Aufnahme bitten',
  appliedNow: 'Du hast um Aufnahme gebeten. Du siehst die Gruppe, sobald du aufgenommen bist.',
  isMember: 'Du bist Mitglied dieser Gruppe.',
  openGroup: 'Gruppe öffnen',
  badLink: 'Dieser Link führt zu keiner Gruppe und keinem Kanal. Bitte um einen neuen.',

  notes: {
    created: 'Die Gruppe wurde angelegt',
    blocked: 'Eine Nachricht einer Person, die du blockiert hast',
    joined: (who) => `Neu dabei: ${who}`,
    left: (who) => `Gegangen: ${who}`,
    removed: (who, by) => `Entfernt: ${who} (durch ${by})`,
    banned: (who, by) => `Ausgeschlossen: ${who} (durch ${by})`,
    unbanned: (who, by) => `Ausschluss aufgehoben: ${who} (durch ${by})`,
    role: (who, role) => `Neue Rolle von ${who}: ${role}`,
    rekeyed: (who) => `Wieder Zugang, mit neuem Schlüssel: ${who}`,
    renamed: (name) => `Die Gruppe heißt jetzt „${name}“`,
    changed: 'Beschreibung oder Regeln der Gruppe sind geändert',
    rotated: 'Der Schlüssel ist gewechselt: Nur wer jetzt Mitglied ist, kann Folgendes lesen',
    epoch:
      'Der Gastgeber hat einen neuen Schlüsselabschnitt begonnen, weil sich Mitglieder geändert haben',
    closed: 'Die Gruppe wurde geschlossen',
    nickname: (who, name) => `${who}: heißt hier jetzt „${name}“`,
    noNickname: (who) => `${who}: hier ohne eigenen Namen`,
    pending: (who) => `Eine Nachricht von ${who}: Ihr Schlüssel ist noch nicht auf diesem Gerät`,
    rejected: (who) => `Eine Nachricht von ${who} lässt sich nicht lesen`,
    unknown: (who) => `Etwas von ${who}, das diese App nicht kennt`,
    invalid: 'Etwas hier lässt sich nicht prüfen und wird nicht verwendet',
  },
};

export const text = inLanguage({ en, de });
