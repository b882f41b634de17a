import { useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import { type NotifyLevel, notifyLevel, setNotifyLevel } from '../state/notify-mark.ts';
import { startNotifying } from './notify.ts';
import { n } from './notify-text.ts';
import { SubScreen } from './sub-screen.tsx';

const canNotify = 'Notification' in globalThis;
const levels = [undefined, 'name', 'text'] as const;

/** What notifications show. The browser asks the person when the first kind is chosen. */
export function Notifications({ app }: { readonly app: App }) {
  const [level, setLevel] = useState(notifyLevel);
  const [fault, setFault] = useState(canNotify ? '' : n.missing);
  const choose = async (wanted: NotifyLevel | undefined) => {
    if (wanted !== undefined && (await Notification.requestPermission()) !== 'granted') {
      return setFault(n.refused);
    }
    setFault('');
    setNotifyLevel(wanted);
    setLevel(wanted);
    if (wanted !== undefined) startNotifying(app);
  };
  return (
    <SubScreen title={n.title}>
      <p>{n.about}</p>
      <fieldset disabled={!canNotify}>
        <legend class="hidden">{n.title}</legend>
        {levels.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="level"
              checked={level === each}
              onChange={() => void choose(each)}
            />{' '}
            {n[each ?? 'off']}
          </label>
        ))}
      </fieldset>
      <p>{n.seen}</p>
      <p role="alert" class="fault">
        {fault}
      </p>
    </SubScreen>
  );
}
