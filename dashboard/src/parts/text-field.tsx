import { useEffect, useState } from "react";

/** Takes effect on Enter or when the field is left. */
export function Text(props: {
  readonly label: string;
  readonly value: string | undefined;
  readonly list?: string;
  /** What `/` leads to. */
  readonly isSearch?: boolean;
  readonly onSet: (value: string) => void;
}) {
  const { label, value = "", list, isSearch, onSet } = props;
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = () => text.trim() !== value && onSet(text.trim());
  return (
    <label>
      {label}
      <input
        {...(isSearch ? { "data-search": true } : {})}
        value={text}
        list={list}
        placeholder="any"
        maxLength={200}
        onChange={(event) => setText(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => event.key === "Enter" && apply()}
      />
    </label>
  );
}
