import { l } from './lock-text.ts';

/** Whether a passkey is made as well, if this browser may have one; if it has none, that the password does. */
export function PasskeyChoice({
  canPasskey,
  isChosen,
  onChoice,
}: {
  /** `undefined` until it is known. */
  readonly canPasskey: boolean | undefined;
  readonly isChosen: boolean;
  readonly onChoice: (isChosen: boolean) => void;
}) {
  if (canPasskey === undefined) return null;
  if (!canPasskey) return <p>{l.noPasskey}</p>;
  return (
    <p>
      <label>
        <input
          type="checkbox"
          checked={isChosen}
          onChange={({ currentTarget }) => onChoice(currentTarget.checked)}
        />{' '}
        {l.withPasskey}
      </label>
    </p>
  );
}
