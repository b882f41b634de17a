import type { DeviceInfo } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import { useEffect, useState } from 'preact/hooks';
import { Field } from '../parts/controls.tsx';
import type { App } from '../state/app.ts';
import { dateTextOf, text } from '../text/index.ts';
import { AccountKey, withKey } from './account-key.tsx';
import { AddDevice } from './add-device.tsx';
import { DeviceId } from './carry.tsx';
import { deviceNames, nameDevice } from './device-names.ts';
import { faultText } from './faults.ts';
import { Ask, SubScreen, useWork } from './sub-screen.tsx';
import { t } from './text.ts';

/** The devices of the account. */
export function Devices({ app }: { readonly app: App }) {
  const [devices, setDevices] = useState<readonly DeviceInfo[]>([]);
  const [names, setNames] = useState(deviceNames);
  const { run, report } = useWork();
  const read = async () => {
    const found = await app.account.devices.list();
    setDevices(found.toSorted((a, b) => Number(b.isThisDevice) - Number(a.isThisDevice)));
  };
  useEffect(() => {
    void run(text.starting, read);
  }, []);
  return (
    <SubScreen title={t.devices}>
      <p>{t.devicesText}</p>
      <AccountKey app={app} />
      <ul class="devices">
        {devices.map((device) => (
          <Device
            key={device.deviceId}
            {...{ app, device, read, name: names[device.deviceId] ?? '' }}
            onName={(name) => setNames(nameDevice(device.deviceId, name))}
          />
        ))}
      </ul>
      {report}
      <AddDevice
        {...{ app }}
        onAdded={async (deviceId, name) => {
          if (name !== '') setNames(nameDevice(deviceId, name));
          await read();
        }}
      />
    </SubScreen>
  );
}

function Device({
  app,
  device,
  name,
  onName,
  read,
}: {
  readonly app: App;
  readonly device: DeviceInfo;
  readonly name: string;
  readonly onName: (name: string) => void;
  readonly read: () => Promise<void>;
}) {
  const { deviceId, isThisDevice, isValidNow, notBefore, expiresAt, history } = device;
  const { devices } = app.account;
  const { isBusy, run, report } = useWork();
  const [draft, setDraft] = useState(name);
  /** Whether contacts could not be told, so that only force removes it. */
  const [needsForce, setNeedsForce] = useState(false);
  const shown = name || `${t.unnamed} ${deviceId.slice(4, 8)}`;
  const renew = () =>
    run(
      t.renew,
      async () => {
        await devices.renew(withKey());
        await read();
      },
      { say: t.renewed },
    );
  const remove = async (force: boolean) => {
    const words = (error: unknown) => {
      const isUntold = isClientError(error, 'contacts_unreached');
      setNeedsForce(isUntold);
      return isUntold ? t.removeForceText : faultText(error);
    };
    const work = async () => {
      await devices.remove(deviceId, { force, ...withKey() });
      app.notice.value = t.removed;
      await read();
    };
    await run(t.removeDevice, work, { words });
  };
  const give = async () => {
    let said = '';
    await run(t.handingOver, async () => {
      const { sent, total, isComplete } = await devices.handOver(deviceId);
      said = t.handedOver(sent, total) + (isComplete ? '' : ` ${t.handOverLater}`);
      app.notice.value = said;
      await read();
    });
  };
  return (
    <li>
      <h2>
        <bdi>{shown}</bdi> {isThisDevice && <small>({t.thisDevice})</small>}
      </h2>
      <DeviceId id={deviceId} />
      <p class={isValidNow ? '' : 'fault'}>
        {t.since(dateTextOf(notBefore))},{' '}
        {isValidNow ? t.until(dateTextOf(expiresAt)) : t.expired(dateTextOf(expiresAt))}
      </p>
      {history === 'handed-over' && <p>{t.hasHistory}</p>}
      <div class="row">
        {isThisDevice && (
          <button type="button" class="plain" disabled={isBusy} onClick={() => void renew()}>
            {t.renew}
          </button>
        )}
        {!isThisDevice && isValidNow && (
          <button
            type="button"
            class="plain"
            title={t.handOverText}
            disabled={isBusy}
            onClick={() => void give()}
          >
            {t.handOver}
          </button>
        )}
      </div>
      {report}
      <details>
        <summary>{t.rename}</summary>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onName(draft.trim());
          }}
        >
          <Field {...{ label: t.nameOfDevice, value: draft, onValue: setDraft }} />
          <button type="submit">{text.save}</button>
        </form>
      </details>
      {!isThisDevice && (
        <Ask label={t.removeDevice} question={needsForce ? t.removeForceText : t.removeText}>
          <button
            type="button"
            class="danger"
            disabled={isBusy}
            onClick={() => void remove(needsForce)}
          >
            {needsForce ? t.removeAnyway : t.removeNow}
          </button>
        </Ask>
      )}
    </li>
  );
}
