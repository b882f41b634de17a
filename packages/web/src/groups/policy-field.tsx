import type { GroupInvitePolicy } from '@posthouse/protocol';
import { useId } from 'preact/hooks';
import { text } from './text.ts';

/** Who may invite others to a group (05 §4.1). */
export function PolicyField({
  value,
  onValue,
}: {
  readonly value: GroupInvitePolicy;
  readonly onValue: (value: GroupInvitePolicy) => void;
}) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{text.whoInvites}</label>
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => onValue(currentTarget.value as GroupInvitePolicy)}
      >
        {Object.entries(text.policies).map(([policy, label]) => (
          <option key={policy} value={policy}>
            {label}
          </option>
        ))}
      </select>
    </p>
  );
}
