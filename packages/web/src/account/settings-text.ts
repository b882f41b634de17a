/** Texts of the settings: relay, export, erase. */
import { inLanguage } from '../text/index.ts';

const en = {
  home: 'Relay',
  homeText: 'It stores your messages until your devices have read them, and delivers yours.',
  name: 'Name',
  id: 'ID',
  where: 'Address',
  unknown: 'not known to this page',
  move: 'Move to another relay',
  moveText:
    'Your account, your devices and your contacts stay. Messages that the old relay has stay there until your devices have read them.',
  otherRelays: 'Relays of this network',
  relayId: 'ID of the relay',
  look: 'Look at it first',
  looking: 'Asking both relays…',
  code: 'Invite code, if that relay asks for one',
  preview: (name: string) => `To ${name}`,
  days: (days: number) => `It keeps messages for ${days} days at least.`,
  taken: (devices: number, contacts: number) =>
    `Devices: ${devices}. Contacts that are told: ${contacts}.`,
  waiting: (count: number) =>
    `Messages on their way: ${count}. The old relay goes on delivering them.`,
  shorter: 'It keeps messages for a shorter time than your relay.',
  oldGone: 'Your relay does not answer. What it has for you can be read when it is back.',
  clock: 'Its clock and that of this device differ.',
  same: 'This is your relay already.',
  noStore: 'It stores no attachments.',
  begin: 'Move now',
  moving: (step: number, of: number) => `Moving, step ${step} of ${of}`,
  steps: {
    'last-sync': 'reading the old relay once more',
    stage: 'storing your devices at the new relay',
    'sign-route': 'signing the way to you',
    publish: 'making it known',
    profile: 'publishing your profile',
    'first-sync': 'reading and sending at the new relay',
    replicate: 'letting other relays know',
  } as Readonly<Record<string, string>>,
  moved: 'Your account is at the new relay now.',
  unfinished: (id: string) => `A move to ${id} is not finished.`,
  goOn: 'Go on',
  giveUp: 'Give it up',
  givenUp: 'The move was given up. Your account stays where it is.',

  sees: 'What this relay can see about you',

  exporting: 'Save what is on this device',
  exportText:
    'A file with all conversations that this device has. It is not encrypted: keep it where only you can read it. It is no backup of your account.',
  asJson: 'As JSON, for programs',
  asText: 'As text, to read',
  reading: (count: number) => `Messages read: ${count}`,
  stop: 'Stop',
  exported: (count: number) => `A file with ${count} messages was saved.`,
  attachmentOf: (type: string) => `[attachment: ${type}]`,

  erase: 'Erase this device',
  eraseText:
    'Everything of this account on this device is deleted: messages, drafts, keys. Without a backup or another device the account is lost.',
  backupFirst: 'Save a backup first',
  exportFirst: 'Save the conversations first',
  alsoRemove: 'Also remove this device from the account',
  cannotRemove:
    'This device has no copy of the account’s key: remove it from another device afterwards.',
  sure: 'I know that this cannot be undone',
  eraseNow: 'Erase everything',
  erasing: 'Erasing…',
  notRemoved: (why: string) =>
    `The device could not be removed from the account: ${why} You can erase it all the same, and remove it from another device.`,

  key: 'Account key',
  keyText:
    'This device has no copy of the account’s key. To change devices or move, open it with your backup. It is forgotten when you leave this page.',
  openKey: 'Open the key',
  keyOpen: 'The account’s key is open until you leave this page.',
  otherKey: 'This is the backup of another account.',
};

const de: typeof en = {
  home: 'Relay',
  homeText:
    'Es speichert deine Nachrichten, bis deine Geräte sie gelesen haben, und stellt deine zu.',
  name: 'Name',
  id: 'ID',
  where: 'Adresse',
  unknown: 'dieser Seite nicht bekannt',
  move: 'Zu einem anderen Relay umziehen',
  moveText:
    'Dein Konto, deine Geräte und deine Kontakte bleiben. Nachrichten, die das alte Relay hat, bleiben dort, bis deine Geräte sie gelesen haben.',
  otherRelays: 'Relays dieses Netzes',
  relayId: 'ID des Relays',
  look: 'Erst ansehen',
  looking: 'Beide Relays werden gefragt …',
  code: 'Einladungscode, falls jenes Relay einen verlangt',
  preview: (name) => `Zu ${name}`,
  days: (days) => `Es behält Nachrichten mindestens ${days} Tage.`,
  taken: (devices, contacts) => `Geräte: ${devices}. Kontakte, die es erfahren: ${contacts}.`,
  waiting: (count) => `Nachrichten unterwegs: ${count}. Das alte Relay stellt sie weiter zu.`,
  shorter: 'Es behält Nachrichten kürzer als dein Relay.',
  oldGone: 'Dein Relay antwortet nicht. Was es für dich hat, kannst du lesen, wenn es zurück ist.',
  clock: 'Seine Uhr und die dieses Geräts gehen verschieden.',
  same: 'Das ist schon dein Relay.',
  noStore: 'Es speichert keine Anhänge.',
  begin: 'Jetzt umziehen',
  moving: (step, of) => `Umzug, Schritt ${step} von ${of}`,
  steps: {
    'last-sync': 'das alte Relay wird noch einmal gelesen',
    stage: 'deine Geräte werden beim neuen Relay gespeichert',
    'sign-route': 'der Weg zu dir wird unterschrieben',
    publish: 'er wird bekannt gemacht',
    profile: 'dein Profil wird veröffentlicht',
    'first-sync': 'Lesen und Senden beim neuen Relay',
    replicate: 'andere Relays erfahren es',
  },
  moved: 'Dein Konto ist jetzt beim neuen Relay.',
  unfinished: (id) => `Ein Umzug zu ${id} ist nicht fertig.`,
  goOn: 'Weitermachen',
  giveUp: 'Aufgeben',
  givenUp: 'Der Umzug wurde aufgegeben. Dein Konto bleibt, wo es ist.',

  sees: 'Was dieses Relay über dich sehen kann',

  exporting: 'Speichern, was auf diesem Gerät ist',
  exportText:
    'Eine Datei mit allen Unterhaltungen, die dieses Gerät hat. Sie ist nicht verschlüsselt: Bewahre sie auf, wo nur du sie lesen kannst. Sie ist keine Sicherung deines Kontos.',
  asJson: 'Als JSON, für Programme',
  asText: 'Als Text, zum Lesen',
  reading: (count) => `Gelesene Nachrichten: ${count}`,
  stop: 'Anhalten',
  exported: (count) => `Eine Datei mit ${count} Nachrichten wurde gespeichert.`,
  attachmentOf: (type) => `[Anhang: ${type}]`,

  erase: 'Dieses Gerät löschen',
  eraseText:
    'Alles von diesem Konto auf diesem Gerät wird gelöscht: Nachrichten, Entwürfe, Schlüssel. Ohne Sicherung oder anderes Gerät ist das Konto verloren.',
  backupFirst: 'Erst eine Sicherung speichern',
  exportFirst: 'Erst die Unterhaltungen speichern',
  alsoRemove: 'Dieses Gerät auch aus dem Konto entfernen',
  cannotRemove:
    'Dieses Gerät hat keine Kopie des Kontoschlüssels: Entferne es danach von einem anderen Gerät aus.',
  sure: 'Ich weiß, dass sich das nicht rückgängig machen lässt',
  eraseNow: 'Alles löschen',
  erasing: 'Wird gelöscht …',
  notRemoved: (why) =>
    `Das Gerät konnte nicht aus dem Konto entfernt werden: ${why} Du kannst es trotzdem löschen und von einem anderen Gerät aus entfernen.`,

  key: 'Kontoschlüssel',
  keyText:
    'Dieses Gerät hat keine Kopie des Kontoschlüssels. Um Geräte zu ändern oder umzuziehen, öffne ihn mit deiner Sicherung. Er wird vergessen, wenn du diese Seite verlässt.',
  openKey: 'Schlüssel öffnen',
  keyOpen: 'Der Kontoschlüssel ist offen, bis du diese Seite verlässt.',
  otherKey: 'Das ist die Sicherung eines anderen Kontos.',
};

export const s = inLanguage({ en, de });
