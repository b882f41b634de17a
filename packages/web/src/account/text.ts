/** Texts of devices and joining, in both languages. */
import { inLanguage } from '../text/index.ts';

const en = {
  // Handing texts from one screen to the other.
  showQr: 'Show as a QR code',
  qrOf: (what: string) => `QR code: ${what}`,
  tooLong: 'Too long for a QR code: copy it or save the file.',
  saveFile: 'Save as a file',
  scan: 'Use the camera',
  stopScan: 'Stop the camera',
  camera: 'Camera: hold the QR code in front of it',
  noCamera: 'The camera cannot be used. Paste the text, or open the file.',
  noScan: 'This browser cannot read QR codes. Paste the text, or open the file.',
  noQr: 'There is no QR code in this picture.',
  paste: 'Or paste it here',
  openFile: 'Or open a file or a picture of the code',
  next: 'Go on',

  // The new device.
  join: 'Add this device to my account',
  joinText:
    'For an account that you use on another device. On that one, open Settings, Devices, Add a device.',
  joinCode: 'The link that your other device shows',
  notALink: 'This is not the link of another device.',
  joinSteps: 'Let your other device read this request.',
  request: 'Request of the new device',
  compare: 'Both screens must show the same ID:',
  answer: 'Then let this device read the answer.',
  joining: 'Checking the answer…',
  notAnAnswer: 'This is not an answer to this device’s request.',
  otherDevice: 'The answer is for another device or account.',
  removedAgain:
    'The account does not have this device: it was removed, or the approval is no longer valid. Let your other device approve the request again.',
  stopJoining: 'Do not join',

  // The devices of the account.
  devices: 'Devices',
  devicesText: 'Every device in this list reads your messages.',
  thisDevice: 'this device',
  unnamed: 'Device',
  since: (day: string) => `since ${day}`,
  until: (day: string) => `valid until ${day}`,
  expired: (day: string) => `expired on ${day}: it reads and sends nothing more`,
  rename: 'Change the name',
  nameOfDevice: 'Name, for you in this browser',
  renew: 'Renew for a year',
  renewed: 'This device is valid for about a year again.',
  removeDevice: 'Remove the device',
  removeText:
    'It reads and sends nothing more from then on; what it has, it keeps. Your contacts are told first, which may take a while. To add it again, it must ask again.',
  removeNow: 'Remove it',
  removeAnyway: 'Remove it all the same',
  removeForceText:
    'Not all of your contacts could be told. If you remove it now, some of them may not be able to write to you until you write to them.',
  removed: 'The device was removed.',
  handOver: 'Give it my messages',
  handOverText: 'It gets the messages that this device has, the newest first.',
  handingOver: 'Messages are being sent to it…',
  handedOver: (sent: number, total: number) => `${sent} of ${total} messages were sent to it.`,
  handOverLater: 'The rest follows tomorrow: a day has a limit.',
  hasHistory: 'It got the messages of this device.',

  // Adding one.
  addDevice: 'Add a device',
  addText:
    'On the new device, open this link: read the code with its camera, or send it to yourself.',
  joinLink: 'Link for the new device',
  addRequest: 'The new device then shows a request. Read it here.',
  notARequest: 'This is not the request of a device.',
  otherAccount: 'This request is for another account.',
  expiredRequest:
    'This request is too old, or one of the clocks is wrong. Let the new device make another one.',
  ask: 'Does the new device show this ID?',
  approve: 'Yes, add it',
  refuse: 'No',
  refused: 'The device was not added.',
  approving: 'The device is being added…',
  approved: 'It was added. Let the new device read this answer; without it, it cannot begin.',
  approval: 'Answer to the new device',
  done: 'Done',
  stopAdding: 'Do not add one',
};

const de: typeof en = {
  showQr: 'Als QR-Code zeigen',
  qrOf: (what) => `QR-Code: ${what}`,
  tooLong: 'Zu lang für einen QR-Code: Kopiere den Text oder speichere die Datei.',
  saveFile: 'Als Datei speichern',
  scan: 'Kamera benutzen',
  stopScan: 'Kamera ausschalten',
  camera: 'Kamera: halte den QR-Code davor',
  noCamera: 'Die Kamera geht nicht. Füge den Text ein oder öffne die Datei.',
  noScan: 'Dieser Browser kann keine QR-Codes lesen. Füge den Text ein oder öffne die Datei.',
  noQr: 'In diesem Bild ist kein QR-Code.',
  paste: 'Oder hier einfügen',
  openFile: 'Oder eine Datei oder ein Bild des Codes öffnen',
  next: 'Weiter',

  join: 'Dieses Gerät zu meinem Konto hinzufügen',
  joinText:
    'Für ein Konto, das du auf einem anderen Gerät benutzt. Öffne dort Einstellungen, Geräte, Gerät hinzufügen.',
  joinCode: 'Der Link, den dein anderes Gerät zeigt',
  notALink: 'Das ist nicht der Link eines anderen Geräts.',
  joinSteps: 'Lass dein anderes Gerät diese Anfrage lesen.',
  request: 'Anfrage des neuen Geräts',
  compare: 'Beide Bildschirme müssen dieselbe ID zeigen:',
  answer: 'Lass dann dieses Gerät die Antwort lesen.',
  joining: 'Die Antwort wird geprüft …',
  notAnAnswer: 'Das ist keine Antwort auf die Anfrage dieses Geräts.',
  otherDevice: 'Die Antwort ist für ein anderes Gerät oder Konto.',
  removedAgain:
    'Das Konto hat dieses Gerät nicht: Es wurde entfernt, oder die Zustimmung gilt nicht mehr. Lass dein anderes Gerät der Anfrage noch einmal zustimmen.',
  stopJoining: 'Nicht hinzufügen',

  devices: 'Geräte',
  devicesText: 'Jedes Gerät in dieser Liste liest deine Nachrichten.',
  thisDevice: 'dieses Gerät',
  unnamed: 'Gerät',
  since: (day) => `seit ${day}`,
  until: (day) => `gültig bis ${day}`,
  expired: (day) => `abgelaufen am ${day}: Es liest und sendet nichts mehr`,
  rename: 'Namen ändern',
  nameOfDevice: 'Name, für dich in diesem Browser',
  renew: 'Für ein Jahr verlängern',
  renewed: 'Dieses Gerät gilt wieder für etwa ein Jahr.',
  removeDevice: 'Gerät entfernen',
  removeText:
    'Es liest und sendet dann nichts mehr; was es hat, behält es. Zuerst erfahren es deine Kontakte, das kann etwas dauern. Um wieder dazuzukommen, muss es neu anfragen.',
  removeNow: 'Entfernen',
  removeAnyway: 'Trotzdem entfernen',
  removeForceText:
    'Nicht alle deine Kontakte haben es erfahren. Wenn du es jetzt entfernst, können dir manche vielleicht erst wieder schreiben, wenn du ihnen schreibst.',
  removed: 'Das Gerät wurde entfernt.',
  handOver: 'Ihm meine Nachrichten geben',
  handOverText: 'Es bekommt die Nachrichten, die dieses Gerät hat, die neuesten zuerst.',
  handingOver: 'Nachrichten werden an es gesendet …',
  handedOver: (sent, total) => `${sent} von ${total} Nachrichten wurden an es gesendet.`,
  handOverLater: 'Der Rest folgt morgen: Ein Tag hat eine Grenze.',
  hasHistory: 'Es hat die Nachrichten dieses Geräts bekommen.',

  addDevice: 'Gerät hinzufügen',
  addText:
    'Öffne auf dem neuen Gerät diesen Link: Lies den Code mit seiner Kamera, oder schick ihn dir selbst.',
  joinLink: 'Link für das neue Gerät',
  addRequest: 'Das neue Gerät zeigt dann eine Anfrage. Lies sie hier ein.',
  notARequest: 'Das ist nicht die Anfrage eines Geräts.',
  otherAccount: 'Diese Anfrage ist für ein anderes Konto.',
  expiredRequest:
    'Diese Anfrage ist zu alt, oder eine der Uhren geht falsch. Lass das neue Gerät eine neue machen.',
  ask: 'Zeigt das neue Gerät diese ID?',
  approve: 'Ja, hinzufügen',
  refuse: 'Nein',
  refused: 'Das Gerät wurde nicht hinzugefügt.',
  approving: 'Das Gerät wird hinzugefügt …',
  approved:
    'Es wurde hinzugefügt. Lass das neue Gerät diese Antwort lesen; ohne sie kann es nicht anfangen.',
  approval: 'Antwort an das neue Gerät',
  done: 'Fertig',
  stopAdding: 'Keines hinzufügen',
};

export const t = inLanguage({ en, de });
