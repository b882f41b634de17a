/** Texts of passkeys that open the account key. */
import { inLanguage } from '../text/index.ts';

const en = {
  alsoOpens: 'Your passkey opens the file, too.',
  title: 'Passkeys of the account key',
  about:
    'Each opens the account key on this device, and the backup files that were saved since it was made. The password of a file opens it in any case. To add one, save a backup with it.',
  item: (number: number, site: string) => `Passkey ${number}, for ${site}`,
  fileByPasskey: 'Open the file with a passkey',
  making: 'The passkey is being made …',
  remove: 'Remove',
  removing: 'The passkey is being removed …',
  question:
    'It does not open the account key on this device any more. Files that were saved with it may still be opened with it: delete the passkey in your browser or system, too.',
  removeNow: 'Remove it',
  removed: 'The passkey was removed.',
  nextTime: 'Open it with a passkey next time',
};

const de: typeof en = {
  alsoOpens: 'Dein Passkey öffnet die Datei auch.',
  title: 'Passkeys des Kontoschlüssels',
  about:
    'Jeder öffnet den Kontoschlüssel auf diesem Gerät und die Sicherungen, die seitdem gespeichert wurden. Das Passwort einer Datei öffnet sie in jedem Fall. Um einen hinzuzufügen, speichere eine Sicherung damit.',
  item: (number, site) => `Passkey ${number}, für ${site}`,
  fileByPasskey: 'Datei mit einem Passkey öffnen',
  making: 'Der Passkey wird erstellt …',
  remove: 'Entfernen',
  removing: 'Der Passkey wird entfernt …',
  question:
    'Er öffnet den Kontoschlüssel auf diesem Gerät nicht mehr. Dateien, die damit gespeichert wurden, öffnet er vielleicht noch: Lösche den Passkey auch in deinem Browser oder System.',
  removeNow: 'Entfernen',
  removed: 'Der Passkey wurde entfernt.',
  nextTime: 'Nächstes Mal mit einem Passkey öffnen',
};

export const k = inLanguage({ en, de });
