import { expect, test } from 'vitest';
import { ProcessPresence } from '../../src/notifications/process-presence.ts';

test('a process that was heard of and falls silent is reported once; one that left is not', () => {
  const [patient, impatient] = [new ProcessPresence(1_000_000), new ProcessPresence(-1)];
  const [one, other] = [new ProcessPresence(0), new ProcessPresence(0)];
  for (const presence of [patient, impatient]) {
    expect(presence.forgetSilent()).toBe(false);
    presence.hear(one.announcement(false));
    presence.hear(other.announcement(false));
    presence.hear(other.announcement(true));
  }
  expect(patient.forgetSilent()).toBe(false);
  expect(impatient.forgetSilent()).toBe(true);
  expect(impatient.forgetSilent()).toBe(false);
  impatient.hear(other.announcement(false));
  impatient.hear(other.announcement(true));
  expect(impatient.forgetSilent()).toBe(false);
});
