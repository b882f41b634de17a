/** Texts for a device that the relay serves no more. */
import { inLanguage } from '../text/index.ts';

const en = {
  why: {
    device_unknown: 'This device was removed from the account.',
    forbidden: 'The relay’s operator blocked this account or your address.',
  },
  whatNow: 'What now?',
  happened: {
    device_unknown:
      'The relay does not know this device any more. Another device of the account removed it, the account was recovered with a backup, this device was not renewed in time, or the operator deleted the account.',
    forbidden:
      'The relay refuses every sign-in of this device. Only its operator can change that: ask there, with your account ID.',
  },
  askAgain: 'Ask the relay again',
  still: 'What is still here',
  stillText:
    'The messages that this device has: you can read, search and save them. Nothing new arrives, and nothing leaves.',
  waiting: (count: number) => `Not sent: ${count}. They stay in their conversations, to copy.`,
  joinAgain: 'Join again',
  joinAgainText:
    'A removed device does not come back as it was. It is erased, and asks another device of the account to add it as a new one, which can give it its messages.',
  joinSure:
    'What only this device has is lost then, also messages that were not sent. Save the conversations first, and have the other device, or your backup, at hand.',
  joinNow: 'Erase and ask to join',
  noDevice: 'If no other device is left, use your backup on the first screen after that.',
};

const de: typeof en = {
  why: {
    device_unknown: 'Dieses Gerät wurde aus dem Konto entfernt.',
    forbidden: 'Das Relay hat dieses Konto oder deine Adresse gesperrt.',
  },
  whatNow: 'Was nun?',
  happened: {
    device_unknown:
      'Das Relay kennt dieses Gerät nicht mehr. Ein anderes Gerät des Kontos hat es entfernt, das Konto wurde mit einer Sicherung wiederhergestellt, dieses Gerät wurde nicht rechtzeitig verlängert, oder das Konto wurde beim Relay gelöscht.',
    forbidden:
      'Das Relay lehnt jede Anmeldung dieses Geräts ab. Nur wer es betreibt, kann das ändern: Frag dort, mit deiner Konto-ID.',
  },
  askAgain: 'Das Relay noch einmal fragen',
  still: 'Was noch hier ist',
  stillText:
    'Die Nachrichten, die dieses Gerät hat: Du kannst sie lesen, durchsuchen und speichern. Neue kommen nicht an, und keine gehen ab.',
  waiting: (count) => `Nicht gesendet: ${count}. Sie stehen weiter in ihren Unterhaltungen.`,
  joinAgain: 'Wieder dazukommen',
  joinAgainText:
    'Ein entferntes Gerät kommt nicht zurück, wie es war. Es wird gelöscht und bittet ein anderes Gerät des Kontos, es als neues hinzuzufügen; dieses kann ihm seine Nachrichten geben.',
  joinSure:
    'Was nur dieses Gerät hat, ist dann verloren, auch nicht gesendete Nachrichten. Speichere erst die Unterhaltungen, und halte das andere Gerät oder deine Sicherung bereit.',
  joinNow: 'Löschen und darum bitten',
  noDevice: 'Ist kein anderes Gerät mehr da, nimm danach auf der ersten Seite deine Sicherung.',
};

export const e = inLanguage({ en, de });
