/** Texts of the lock. */
import { inLanguage } from '../text/index.ts';

const en = {
  lock: 'Lock this device',
  lockText:
    'What this device stores is encrypted, and opened with a password each time the app starts. Who has the device and not the password cannot read it. Not hidden: which accounts, groups and channels there are, and when something came. Drafts and the names that you gave your devices are not kept.',
  noReset: 'Nobody can reset the password. Save a backup of your account first.',
  withPasskey: 'Also open it with a passkey (finger, face or PIN)',
  noPasskey: 'Passkeys do not work in this browser; the password does.',
  lockNow: 'Lock now',
  locking: 'Encrypting…',
  otherTabs: 'Close the other tabs of this app first.',
  locked: 'This device is locked: its password is asked for at each start.',
  hasPasskey: 'A passkey opens it, too.',
  current: 'Password of the lock',
  addPasskey: 'Add a passkey',
  unlockForGood: 'Remove the lock',
  decrypting: 'Decrypting…',
  passkeyAdded: 'The passkey was added.',

  title: 'Locked',
  titleText: 'Open what this device stores.',
  byPasskey: 'Open with a passkey',
  open: 'Open',
  opening: 'Opening…',
  wrong: 'The password is wrong.',
  damaged: 'What opens this device is damaged. Erase it, and use your backup.',
  forgotten: 'I cannot open it',
  forgottenText:
    'Without the password nothing on this device can be read. You can erase it, and begin again with your backup or another device.',

  passkey: {
    passkey_unavailable: 'Passkeys do not work in this browser. Use the password.',
    passkey_unsuitable: 'This passkey cannot protect a key. Use another one, or the password.',
    passkey_refused: 'No passkey was used. Try again, or use the password.',
    passkey_exists: 'There is a passkey for this already. Use it, or the password.',
    passkey_wrong_site: 'Passkeys do not work at this address. Use the password.',
    passkey_mismatch: 'The passkey does not open this. Use the password.',
  } as Readonly<Record<string, string>>,
};

const de: typeof en = {
  lock: 'Dieses Gerät sperren',
  lockText:
    'Was dieses Gerät speichert, wird verschlüsselt und bei jedem Start der App mit einem Passwort geöffnet. Wer das Gerät hat und nicht das Passwort, kann es nicht lesen. Nicht verborgen ist, welche Konten, Gruppen und Kanäle es gibt und wann etwas kam. Entwürfe und die Namen, die du deinen Geräten gegeben hast, werden nicht behalten.',
  noReset: 'Niemand kann das Passwort zurücksetzen. Speichere erst eine Sicherung deines Kontos.',
  withPasskey: 'Auch mit einem Passkey öffnen (Finger, Gesicht oder PIN)',
  noPasskey: 'Passkeys gehen in diesem Browser nicht; das Passwort geht.',
  lockNow: 'Jetzt sperren',
  locking: 'Wird verschlüsselt …',
  otherTabs: 'Schließe erst die anderen Tabs dieser App.',
  locked: 'Dieses Gerät ist gesperrt: Bei jedem Start wird nach dem Passwort gefragt.',
  hasPasskey: 'Ein Passkey öffnet es auch.',
  current: 'Passwort der Sperre',
  addPasskey: 'Passkey hinzufügen',
  unlockForGood: 'Sperre aufheben',
  decrypting: 'Wird entschlüsselt …',
  passkeyAdded: 'Der Passkey wurde hinzugefügt.',

  title: 'Gesperrt',
  titleText: 'Öffne, was dieses Gerät speichert.',
  byPasskey: 'Mit einem Passkey öffnen',
  open: 'Öffnen',
  opening: 'Wird geöffnet …',
  wrong: 'Das Passwort ist falsch.',
  damaged: 'Was dieses Gerät öffnet, ist beschädigt. Lösche es und nimm deine Sicherung.',
  forgotten: 'Ich kann es nicht öffnen',
  forgottenText:
    'Ohne das Passwort kann nichts auf diesem Gerät gelesen werden. Du kannst es löschen und mit deiner Sicherung oder einem anderen Gerät neu anfangen.',

  passkey: {
    passkey_unavailable: 'Passkeys gehen in diesem Browser nicht. Nimm das Passwort.',
    passkey_unsuitable:
      'Dieser Passkey kann keinen Schlüssel schützen. Nimm einen anderen oder das Passwort.',
    passkey_refused:
      'Es wurde kein Passkey benutzt. Versuch es noch einmal, oder nimm das Passwort.',
    passkey_exists: 'Dafür gibt es schon einen Passkey. Nimm ihn oder das Passwort.',
    passkey_wrong_site: 'Passkeys gehen unter dieser Adresse nicht. Nimm das Passwort.',
    passkey_mismatch: 'Der Passkey öffnet das nicht. Nimm das Passwort.',
  },
};

export const l = inLanguage({ en, de });
