/** Texts of restoring, of a set-up that did not end, and of recovery. */
import { inLanguage } from '../text/index.ts';

const en = {
  begun: 'A set-up on this device did not end.',
  goOn: 'Go on with it',
  discard: 'Discard it',
  discarded: 'The set-up was discarded.',
  sent: 'It may have taken effect: the account may exist, with a device that is lost. If you discard it and have no backup of it, you lose that account.',
  discardAnyway: 'Discard it all the same',
  goingOn: 'Going on…',

  lost: 'The relay of this account does not answer',
  lostText:
    'If it comes back, try again then: nothing is lost. If it is gone for good and all your other devices are lost too, the account can begin again at this relay, with this device alone.',
  warning:
    'Every other device of the account is removed. Contacts and groups find you again; messages that no device has are gone.',
  sure: 'The old relay is gone, and all my other devices are lost',
  recover: 'Recover the account here',
  recovering: 'Recovering…',
};

const de: typeof en = {
  begun: 'Eine Einrichtung auf diesem Gerät ist nicht fertig geworden.',
  goOn: 'Weitermachen',
  discard: 'Verwerfen',
  discarded: 'Die Einrichtung wurde verworfen.',
  sent: 'Sie kann wirksam geworden sein: Das Konto gibt es dann, mit einem Gerät, das verloren ist. Wenn du sie verwirfst und keine Sicherung davon hast, verlierst du jenes Konto.',
  discardAnyway: 'Trotzdem verwerfen',
  goingOn: 'Es geht weiter …',

  lost: 'Das Relay dieses Kontos antwortet nicht',
  lostText:
    'Falls es zurückkommt, versuch es dann noch einmal: Nichts ist verloren. Wenn es für immer weg ist und auch alle deine anderen Geräte verloren sind, kann das Konto bei diesem Relay neu anfangen, nur mit diesem Gerät.',
  warning:
    'Jedes andere Gerät des Kontos wird entfernt. Kontakte und Gruppen finden dich wieder; Nachrichten, die kein Gerät hat, sind weg.',
  sure: 'Das alte Relay ist weg, und alle meine anderen Geräte sind verloren',
  recover: 'Konto hier wiederherstellen',
  recovering: 'Wird wiederhergestellt …',
};

export const r = inLanguage({ en, de });
